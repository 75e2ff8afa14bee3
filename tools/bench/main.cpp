// rill-bench: measures rill on the workloads of its peers.
#include <algorithm>
#include <exception>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <bench/timing.h>
#include <bench/workloads.h>
#include <rill/core/about.h>
#include <rill/core/io/file.h>
#include <rill/core/parallel.h>

namespace {

std::string listed_workloads() {
  std::string text = "\nWorkloads:\n";
  for (const auto& workload : bench::workloads())
    text += fmt::format("  {:15} {}\n", workload.name, workload.what);
  return text;
}

/// Prints a measurement with the fields common to all: a JSON line, or "name value" pairs.
void print(const std::string& workload, nlohmann::ordered_json fields, bool json) {
  nlohmann::ordered_json record = {{"peer", "rill"}, {"workload", workload}};
  record.update(fields);
  record["threads"] = rill::num_threads();
  record["simd"] = rill::simd_name();
  record["blas"] = rill::blas_name();
  record["rss_peak_mib"] = bench::peak_rss_mib();
  if (json) {
    fmt::print("{}\n", record.dump());
    std::fflush(stdout);
    return;
  }
  std::string line = workload;
  for (const auto& [name, value] : fields.items()) {
    line += value.is_number_float() ? fmt::format("  {} {:.4g}", name, value.get<double>())
            : value.is_string()     ? fmt::format("  {} {}", name, value.get<std::string>())
                                    : fmt::format("  {} {}", name, value.dump());
  }
  fmt::print("{}\n", line);
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app("Benchmarks rill. Results are medians; compare only alternating runs on one quiet machine.",
               "rill-bench");
  std::vector<std::string> names;
  for (const auto& workload : bench::workloads()) names.push_back(workload.name);
  std::string name;
  int threads = 0;
  bool json = false;
  bench::WorkloadOptions options;
  app.footer(listed_workloads());
  app.add_option("WORKLOAD", name, "workload to measure")->required()->check(CLI::IsMember(names));
  app.add_option("--threads", threads, "number of threads (default: all available)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--seconds", options.seconds, "maximum timed seconds of a training workload")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--batch", options.batch, "batch size (all but micro)")->check(CLI::Range(1, 65536));
  app.add_option("--hidden", options.hidden, "hidden size (all but micro)")->check(CLI::Range(1, 65536));
  app.add_option("--steps", options.steps, "number of steps (all but micro)")->check(CLI::Range(2, 1 << 20));
  app.add_option("--words", options.words, "vocabulary size (seq2seq, decode)")
      ->check(CLI::Range(4, 1 << 24));
  app.add_flag("--ragged", options.ragged,
               "lengths uniform in 1 … steps (gru, rau); the floor is that of full-length sequences");
  app.add_flag("--json", json, "one JSON object per line");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (threads > 0) rill::set_num_threads(threads);
  const bench::Workload& workload = *std::find_if(bench::workloads().begin(), bench::workloads().end(),
                                                  [&](const auto& w) { return w.name == name; });
  for (const char* option : {"--batch", "--hidden", "--steps", "--words", "--ragged"}) {
    if (app.count(option) == 0 || std::ranges::count(workload.options, option) > 0) continue;
    fmt::print(stderr, "rill-bench: {} has no {}; it has {}\n", name, option,
               workload.options.empty() ? "none" : fmt::format("{}", fmt::join(workload.options, ", ")));
    return 2;
  }
  workload.run(options, [&](nlohmann::ordered_json fields) { print(name, std::move(fields), json); });
  rill::flush_stdout();
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "rill-bench: {}\n", error.what());
  return 1;
}
