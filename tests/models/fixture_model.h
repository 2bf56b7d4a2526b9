// The tiny models of fixtures/models with their known logits, and the ways a test runs them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "engine/container/model_reader.h"
#include "engine/generate/model.h"
#include "engine/runtime/thread_pool.h"
#include "models/open.h"
#include "tests/support/fixtures.h"

namespace hk::test {

inline nlohmann::json read_json(const std::filesystem::path& path) {
  const auto bytes = read_file(path);
  return nlohmann::json::parse(reinterpret_cast<const char*>(bytes.data()),
                               reinterpret_cast<const char*>(bytes.data()) + bytes.size());
}

/// The records of index.json, read once; empty when the file is not there.
inline const nlohmann::json& fixture_index() {
  static const nlohmann::json index = [] {
    const auto path = find_data("fixtures/models/index.json");
    return path.empty() ? nlohmann::json::array() : read_json(path);
  }();
  return index;
}

/// One record of index.json with what its files hold.
struct FixtureModel {
  nlohmann::json record;
  std::string name;
  std::vector<engine::TokenId> tokens;
  std::size_t n_ctx = 0;
  std::vector<float> exact;  ///< rows of n_vocab
  TemporaryFolder folder;
  std::filesystem::path path;

  /// Null when the files are not there.
  static std::unique_ptr<FixtureModel> load(const std::string& name) {
    for (const nlohmann::json& record : fixture_index()) {
      if (record.at("name") != name) continue;
      const auto file = [&](const char* what) {
        return find_data("fixtures/models/" + record.at("files").at(what).get<std::string>());
      };
      if (file("model").empty()) return nullptr;
      auto model = std::make_unique<FixtureModel>();
      model->record = record;
      model->name = name;
      const nlohmann::json tokens = read_json(file("tokens"));
      model->tokens = tokens.at("tokens").get<std::vector<engine::TokenId>>();
      model->n_ctx = tokens.at("n_ctx").get<std::size_t>();
      model->exact = read_array<float>(file("exact"));
      model->path = model->folder.write(name + ".gguf", read_zst(file("model")));
      return model;
    }
    return nullptr;
  }

  std::shared_ptr<engine::ModelReader> reader() const { return engine::open_model(path.string()); }
  bool quantized() const {
    for (const auto& [type, count] : record.at("tensor_types").items()) {
      if (type != "F32" && type != "F16" && type != "BF16") return true;
    }
    return false;
  }
  double tolerance() const { return record.at("tolerance").at("max_abs_vs_exact").get<double>(); }
  double reference_rms() const { return record.at("noise").at("logits_vs_exact_rms").get<double>(); }
};

/// Names of all fixtures, in the index's order.
inline std::vector<std::string> fixture_names() {
  std::vector<std::string> names;
  for (const nlohmann::json& record : fixture_index()) names.push_back(record.at("name").get<std::string>());
  return names;
}

/// A fixture's name as GoogleTest takes it.
inline std::string test_name(std::string name) {
  std::ranges::replace(name, '-', '_');
  std::erase_if(name, [](char c) { return c == '.'; });
  return name;
}

inline std::vector<float> copy(std::span<const float> values) { return {values.begin(), values.end()}; }

/// All logits of `tokens` fed `batch` at a time into `sequence`.
inline std::vector<float> run(engine::Model& model, engine::Sequence& sequence, std::span<const engine::TokenId> tokens,
                              std::size_t batch) {
  std::vector<float> logits;
  for (std::size_t i = 0; i < tokens.size(); i += batch) {
    const engine::BatchItem item{&sequence, tokens.subspan(i, std::min(batch, tokens.size() - i)),
                                 engine::LogitsFor::kAll};
    const auto rows = model.forward({&item, 1});
    logits.insert(logits.end(), rows.begin(), rows.end());
  }
  return logits;
}

inline std::vector<float> run_fresh(engine::Model& model, const engine::SequenceOptions& options,
                                    std::span<const engine::TokenId> tokens, std::size_t batch) {
  const auto sequence = model.new_sequence(options);
  return run(model, *sequence, tokens, batch);
}

inline double max_difference(std::span<const float> a, std::span<const float> b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(difference <= largest)) largest = difference;  // a NaN stays
  }
  return largest;
}

inline double rms_difference(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += (static_cast<double>(a[i]) - static_cast<double>(b[i])) *
           (static_cast<double>(a[i]) - static_cast<double>(b[i]));
  return std::sqrt(sum / static_cast<double>(std::max<std::size_t>(1, a.size())));
}

inline engine::TokenId best_token(std::span<const float> row) {
  return static_cast<engine::TokenId>(std::ranges::max_element(row) - row.begin());
}

}  // namespace hk::test
