// Filters control characters.
#include "cli/chat/screen.h"

namespace hk::cli {

std::string terminal_safe(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f) continue;
    // C1 controls, U+0080 to U+009F, are C2 80 to C2 9F.
    if (byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0) {
      ++i;
      continue;
    }
    out += text[i];
  }
  return out;
}

}  // namespace hk::cli
