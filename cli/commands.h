// The subcommands of hk-run: each adds itself to the parser and runs when it was chosen.
//
// Layer: cli. One file a subcommand (<name>_command.cpp); options are declared once, where they are used.
#pragma once

namespace CLI {
class App;
}

namespace hk::cli {

void add_convert_command(CLI::App& app);
void add_inspect_command(CLI::App& app);
void add_verify_command(CLI::App& app);
void add_dequantize_command(CLI::App& app);
void add_metadata_command(CLI::App& app);
void add_appendix_command(CLI::App& app);
void add_tokenize_commands(CLI::App& app);  // tokenize, detokenize
void add_template_command(CLI::App& app);
void add_logits_command(CLI::App& app);
void add_generate_command(CLI::App& app);
void add_chat_command(CLI::App& app);
void add_batch_command(CLI::App& app);  // batch, batch merge
void add_bench_command(CLI::App& app);
void add_hardware_command(CLI::App& app);

}  // namespace hk::cli
