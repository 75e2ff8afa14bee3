#include <bench/floor.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cblas.h>

#include <bench/timing.h>
#include <rill/core/error.h>

namespace bench {
namespace {

constexpr double seconds_each = 0.2;

std::vector<float> random_floats(std::int64_t n) {
  std::vector<float> values(static_cast<std::size_t>(n));
  std::uint32_t state = 12345;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = 0.1f * (static_cast<float>(state >> 8) * 0x1p-23f - 1);
  }
  return values;
}

double seconds_of(const FloorProduct& p) {
  const std::vector<float> a = random_floats(p.m * p.k), b = random_floats(p.k * p.n);
  std::vector<float> c(static_cast<std::size_t>(p.m * p.n));
  const auto transposed = [](bool t) { return t ? CblasTrans : CblasNoTrans; };
  const auto narrow = [](std::int64_t size) { return static_cast<blasint>(size); };
  return median_time(
      [&] {
        cblas_sgemm(CblasRowMajor, transposed(p.ta), transposed(p.tb), narrow(p.m), narrow(p.n), narrow(p.k),
                    1, a.data(), narrow(p.ta ? p.m : p.k), b.data(), narrow(p.tb ? p.k : p.n), 0, c.data(),
                    narrow(p.n));
      },
      seconds_each);
}

}  // namespace

void Work::add_linear(std::int64_t steps, std::int64_t all_rows, std::int64_t in, std::int64_t out,
                      std::int64_t copies, bool input_gradient) {
  const std::int64_t m = all_rows / steps;
  products.push_back({steps * copies, m, out, in, false, false});
  if (input_gradient) products.push_back({steps * copies, m, in, out, false, true});
  products.push_back({copies, in, out, all_rows, true, false});
}

double products_ms(const Work& work, int threads) {
  openblas_set_num_threads(threads);
  double seconds = 0;
  for (const FloorProduct& p : work.products) seconds += static_cast<double>(p.count) * seconds_of(p);
  openblas_set_num_threads(1);
  return 1e3 * seconds;
}

double floor_ms(const Work& work, int threads) {
  int ends[2];
  rill::check(pipe(ends) == 0, "floor: pipe() failed");
  const pid_t child = fork();
  rill::check(child >= 0, "floor: fork() failed");
  if (child == 0) {
    const double ms = products_ms(work, threads) + pointwise_ms(work);
    const bool written = write(ends[1], &ms, sizeof(ms)) == sizeof(ms);
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  double ms = 0;
  const bool complete = read(ends[0], &ms, sizeof(ms)) == sizeof(ms);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  rill::check(complete && status == 0, "floor: the process that measures it ended with status {}", status);
  return ms;
}

}  // namespace bench
