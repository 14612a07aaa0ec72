@echo off
rem make.bat FORMAT: as "make FORMAT" elsewhere; needs an installed ptcore and its extra "doc".
cd /d %~dp0
if "%1" == "" (
	python -P -m sphinx -M help source build
) else (
	python -P -m sphinx -M %1 source build -q -W --keep-going
)
