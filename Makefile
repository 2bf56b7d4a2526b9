# The two commands of the README (`make run`, `make test`) and the checks around them. Each installs what it needs.
.PHONY: run build test check format bench report clean

QUESTION ?= What is the capital of France?

run: build
	build/release/cli/hk-run chat demo/hinoki.hk -p "$(QUESTION)"

build:
	scripts/install-packages.sh build
	cmake --preset release -DHK_BUILD_TESTS=OFF -DHK_BUILD_BENCH=OFF >/dev/null
	cmake --build build/release --target hk-run

test:
	scripts/install-packages.sh test
	cmake --preset release -DHK_BUILD_TESTS=ON -DHK_BUILD_BENCH=OFF >/dev/null
	cmake --build build/release
	ctest --preset release

check:
	scripts/check.sh

format:
	scripts/format.sh

bench:
	scripts/install-packages.sh bench
	cmake --preset release -DHK_BUILD_TESTS=OFF -DHK_BUILD_BENCH=ON >/dev/null
	cmake --build build/release --target matmul_bench attention_bench
	scripts/bench.sh

report:
	scripts/install-packages.sh bench
	cmake --preset release -DHK_BUILD_TESTS=OFF -DHK_BUILD_BENCH=ON >/dev/null
	cmake --build build/release --target make_model model_bench hk-run
	scripts/report.sh

clean:
	rm -rf build
