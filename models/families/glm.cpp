// ChatGLM 3 / GLM-4 (`chatglm`) and GLM-4-0414, Z1 (`glm4`): part of each head rotated in adjacent pairs, fused gate
// and up.
#include "models/families/families.h"

namespace hk::models {

void describe_chatglm(Builder& b) { describe_llama(b); }

/// GLM-4-0414 normalises each branch once more before it joins the stream.
void describe_glm4(Builder& b) {
  describe_llama(b);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    b.spec.layers[i].mixer_post_norm = b.norm(Builder::name(i, "post_attention_norm"), b.sizes.width);
    b.spec.layers[i].feed_forward_post_norm = b.norm(Builder::name(i, "post_ffw_norm"), b.sizes.width);
  }
}

}  // namespace hk::models
