// A cell written for PyTorch, as its tutorials write them: forward and backward by ops, a loop over
// an accessor.
#include <torch/extension.h>

#include <vector>

torch::Tensor d_sigmoid(torch::Tensor z) {
    auto s = torch::sigmoid(z);
    return (1 - s) * s;
}
torch::Tensor d_tanh(torch::Tensor z) { return 1 - z.tanh().pow(2); }
torch::Tensor d_elu(torch::Tensor z, torch::Scalar alpha = 1.0) {
    auto e = z.exp();
    auto mask = (alpha * (e - 1)) < 0;
    return (z > 0).type_as(z) + mask.type_as(z) * (alpha * e);
}

std::vector<at::Tensor> cell_forward(torch::Tensor input, torch::Tensor weights, torch::Tensor bias,
                                     torch::Tensor old_h, torch::Tensor old_cell) {
    TORCH_CHECK(input.dim() == 2, "input must have 2 dims, got ", input.dim());
    auto X = torch::cat({old_h, input}, /*dim=*/1);
    auto gate_weights = torch::addmm(bias, X, weights.transpose(0, 1));
    auto gates = gate_weights.chunk(3, /*dim=*/1);
    auto input_gate = torch::sigmoid(gates[0]);
    auto output_gate = torch::sigmoid(gates[1]);
    auto candidate_cell = torch::elu(gates[2], /*alpha=*/1.0);
    auto new_cell = old_cell + candidate_cell * input_gate;
    auto new_h = torch::tanh(new_cell) * output_gate;
    return {new_h, new_cell, input_gate, output_gate, candidate_cell, X, gate_weights};
}

std::vector<torch::Tensor> cell_backward(torch::Tensor grad_h, torch::Tensor grad_cell,
                                         torch::Tensor new_cell, torch::Tensor input_gate,
                                         torch::Tensor output_gate, torch::Tensor candidate_cell,
                                         torch::Tensor X, torch::Tensor gate_weights,
                                         torch::Tensor weights) {
    auto d_output_gate = torch::tanh(new_cell) * grad_h;
    auto d_tanh_new_cell = output_gate * grad_h;
    auto d_new_cell = d_tanh(new_cell) * d_tanh_new_cell + grad_cell;
    auto d_old_cell = d_new_cell;
    auto d_candidate_cell = input_gate * d_new_cell;
    auto d_input_gate = candidate_cell * d_new_cell;
    auto gates = gate_weights.chunk(3, /*dim=*/1);
    d_input_gate *= d_sigmoid(gates[0]);
    d_output_gate *= d_sigmoid(gates[1]);
    d_candidate_cell *= d_elu(gates[2]);
    auto d_gates = torch::cat({d_input_gate, d_output_gate, d_candidate_cell}, /*dim=*/1);
    auto d_weights = d_gates.t().mm(X);
    auto d_bias = d_gates.sum(/*dim=*/0, /*keepdim=*/true);
    auto d_X = d_gates.mm(weights);
    const auto state_size = grad_h.size(1);
    auto d_old_h = d_X.method("narrow", 1, 0, state_size);
    auto d_input = d_X.method("narrow", 1, state_size, d_X.size(1) - state_size);
    return {d_old_h, d_input, d_weights, d_bias, d_old_cell};
}

torch::Tensor doubled(torch::Tensor x) {
    auto out = torch::zeros_like(x);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "doubled", [&] {
        auto from = x.accessor<scalar_t, 2>();
        auto to = out.accessor<scalar_t, 2>();
        for (int64_t i = 0; i < from.size(0); i++)
            for (int64_t j = 0; j < from.size(1); j++) to[i][j] = 2 * from[i][j];
    });
    return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("forward", &cell_forward, "forward");
    m.def("backward", &cell_backward, "backward");
    m.def("doubled", &doubled, "doubled");
}
