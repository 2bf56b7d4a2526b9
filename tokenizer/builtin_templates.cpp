// Chat templates of ours, by name, for models that come without one.
//
// Layer: tokenizer. Each gives the turn format that the family was trained on; no tools, no special cases. The user
// picks one by name (--chat-template), nothing picks for him.
#include <algorithm>

#include "tokenizer/chat_template.h"

namespace hk::tokenizer {
namespace {

struct BuiltinTemplate {
  std::string_view name;
  std::string_view source;
};

// The begin token is written where the family's prompts have one and the vocabulary knows it.
// Joined with + and not ~: a content that is no text is an error and not its printed form.
constexpr BuiltinTemplate kTemplates[] = {
    {"chatml", R"({%- for message in messages -%}
    {{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{ '<|im_start|>assistant\n' }}
{%- endif -%})"},

    {"command-r", R"({{- bos_token -}}
{%- set names = {'system': 'SYSTEM', 'user': 'USER', 'assistant': 'CHATBOT'} -%}
{%- for message in messages -%}
    {%- if message.role not in names -%}
        {{ raise_exception('command-r: there is no role ' + message.role) }}
    {%- endif -%}
    {{ '<|START_OF_TURN_TOKEN|><|' + names[message.role] + '_TOKEN|>' + message.content + '<|END_OF_TURN_TOKEN|>' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{ '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' }}
{%- endif -%})"},

    {"deepseek", R"({{- bos_token -}}
{%- for message in messages -%}
    {%- if message.role == 'system' -%}
        {{ message.content }}
    {%- elif message.role == 'user' -%}
        {{ '<｜User｜>' + message.content }}
    {%- elif message.role == 'assistant' -%}
        {{ '<｜Assistant｜>' + message.content + '<｜end▁of▁sentence｜>' }}
    {%- else -%}
        {{ raise_exception('deepseek: there is no role ' + message.role) }}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{ '<｜Assistant｜>' }}
{%- endif -%})"},

    {"gemma", R"({{- bos_token -}}
{%- set ns = namespace(pending='') -%}
{%- for message in messages -%}
    {%- if message.role == 'system' -%}
        {#- There is no system turn: the text leads the next turn of the user. -#}
        {%- set ns.pending = ns.pending + (message.content + '')|trim + '\n\n' -%}
    {%- elif message.role == 'user' -%}
        {{ '<start_of_turn>user\n' + ns.pending + (message.content + '')|trim + '<end_of_turn>\n' }}
        {%- set ns.pending = '' -%}
    {%- elif message.role == 'assistant' -%}
        {{ '<start_of_turn>model\n' + (message.content + '')|trim + '<end_of_turn>\n' }}
    {%- else -%}
        {{ raise_exception('gemma: there is no role ' + message.role) }}
    {%- endif -%}
{%- endfor -%}
{%- if ns.pending -%}
    {{ raise_exception('gemma: a system message needs a user message after it') }}
{%- endif -%}
{%- if add_generation_prompt -%}
    {{ '<start_of_turn>model\n' }}
{%- endif -%})"},

    {"llama2", R"({%- set ns = namespace(system='') -%}
{%- for message in messages -%}
    {%- if message.role == 'system' -%}
        {%- set ns.system = '<<SYS>>\n' + message.content + '\n<</SYS>>\n\n' -%}
    {%- elif message.role == 'user' -%}
        {{ (bos_token ~ '[INST] ') + (ns.system + message.content)|trim + ' [/INST]' }}
        {%- set ns.system = '' -%}
    {%- elif message.role == 'assistant' -%}
        {{ ' ' + (message.content + '')|trim + (' ' ~ eos_token) }}
    {%- else -%}
        {{ raise_exception('llama2: there is no role ' + message.role) }}
    {%- endif -%}
{%- endfor -%}
{%- if ns.system -%}
    {{ raise_exception('llama2: a system message needs a user message after it') }}
{%- endif -%})"},

    {"llama3", R"({{- bos_token -}}
{%- for message in messages -%}
    {{ '<|start_header_id|>' + message.role + '<|end_header_id|>\n\n' + (message.content + '')|trim + '<|eot_id|>' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif -%})"},

    {"mistral", R"({{- bos_token -}}
{%- set ns = namespace(system='') -%}
{%- for message in messages -%}
    {%- if message.role == 'system' -%}
        {%- set ns.system = message.content + '\n\n' -%}
    {%- elif message.role == 'user' -%}
        {{ '[INST] ' + ns.system + message.content + ' [/INST]' }}
        {%- set ns.system = '' -%}
    {%- elif message.role == 'assistant' -%}
        {{ ' ' + (message.content + '')|trim + (eos_token ~ '') }}
    {%- else -%}
        {{ raise_exception('mistral: there is no role ' + message.role) }}
    {%- endif -%}
{%- endfor -%}
{%- if ns.system -%}
    {{ raise_exception('mistral: a system message needs a user message after it') }}
{%- endif -%})"},

    {"phi3", R"({%- for message in messages -%}
    {{ '<|' + message.role + '|>\n' + message.content + '<|end|>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{ '<|assistant|>\n' }}
{%- endif -%})"},

    {"vicuna", R"({%- for message in messages -%}
    {%- if message.role == 'system' -%}
        {{ message.content + '\n\n' }}
    {%- elif message.role == 'user' -%}
        {{ 'USER: ' + message.content + '\n' }}
    {%- elif message.role == 'assistant' -%}
        {{ 'ASSISTANT: ' + message.content + (eos_token ~ '\n') }}
    {%- else -%}
        {{ raise_exception('vicuna: there is no role ' + message.role) }}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{ 'ASSISTANT:' }}
{%- endif -%})"},

    {"zephyr", R"({%- for message in messages -%}
    {{ '<|' + message.role + '|>\n' + message.content + (eos_token ~ '\n') }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{ '<|assistant|>\n' }}
{%- endif -%})"},
};

}  // namespace

std::optional<std::string_view> find_builtin_template(std::string_view name) {
  const auto* found = std::find_if(std::begin(kTemplates), std::end(kTemplates),
                                   [&](const BuiltinTemplate& each) { return each.name == name; });
  return found == std::end(kTemplates) ? std::nullopt : std::optional(found->source);
}

std::vector<std::string_view> builtin_template_names() {
  std::vector<std::string_view> names;
  for (const auto& each : kTemplates) names.push_back(each.name);
  return names;
}

}  // namespace hk::tokenizer
