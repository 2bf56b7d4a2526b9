// A cheap reference to something that takes pieces of text: no allocation, no ownership.
//
// Layer: tokenizer. std::function would allocate for every stage of every piece.
#pragma once

#include <memory>
#include <string_view>
#include <type_traits>

namespace hk::tokenizer {

class TextSink {
 public:
  template <typename F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, TextSink>)
      TextSink(F&& f)  // NOLINT: implicit on purpose, as a parameter type
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_(
            [](void* object, std::string_view piece) { (*static_cast<std::remove_reference_t<F>*>(object))(piece); }) {}

  void operator()(std::string_view piece) const { call_(object_, piece); }

 private:
  void* object_;
  void (*call_)(void*, std::string_view);
};

}  // namespace hk::tokenizer
