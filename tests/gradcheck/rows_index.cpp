#include <rill/core/core.h>

#include <gradcheck/rows.h>

namespace test {

using rill::Tensor;
using Inputs = std::vector<Tensor>;

namespace {
Tensor ids(std::initializer_list<std::int64_t> values, const rill::Shape& shape) {
  return rill::tensor(values, shape);
}
Tensor flags(const std::vector<bool>& values, const rill::Shape& shape) {
  return rill::tensor(values, shape);
}
}  // namespace

std::vector<GradcheckRow> rows_index() {
  std::vector<GradcheckRow> rows;
  rows.push_back({"embedding",
                  [](const Inputs& in) { return Inputs{rill::embedding(in[0], in[1])}; },
                  {input({5, 3}, 400), ids({4, 0, 4, 1}, {2, 2})}});
  rows.push_back({"index_select",
                  [](const Inputs& in) {
                    return Inputs{rill::index_select(in[0], 0, in[1]), rill::index_select(in[0], -1, in[1])};
                  },
                  {input({3, 2, 3}, 401), ids({2, 0, 2, 1}, {4})}});
  rows.push_back({"gather",
                  [](const Inputs& in) { return Inputs{rill::gather(in[0], 1, in[1])}; },
                  {input({3, 4}, 402), ids({3, 0, 3, 1, 1, 2}, {3, 2})}});
  rows.push_back({"gather",
                  [](const Inputs& in) { return Inputs{rill::gather(in[0], 0, in[1])}; },
                  {input({3, 2, 2}, 403), ids({2, 0, 2, 1, 1, 2, 0, 2}, {4, 2, 1})}});
  rows.push_back({"index_add",
                  [](const Inputs& in) { return Inputs{rill::index_add(in[0], 1, in[2], in[1])}; },
                  {input({2, 3, 2}, 404), input({2, 4, 2}, 405), ids({2, 0, 2, 1}, {4})}});
  rows.push_back({"masked_select",
                  [](const Inputs& in) { return Inputs{rill::masked_select(in[0], in[1])}; },
                  {input({2, 3}, 406), flags({true, false, true}, {3})}});
  rows.push_back({"masked_select",
                  [](const Inputs& in) { return Inputs{rill::masked_select(in[0], in[1])}; },
                  {input({3}, 407), flags({true, false, true, true, true, false}, {2, 3})}});
  return rows;
}

std::vector<GradcheckRow> rows_compare() {
  std::vector<GradcheckRow> rows;
  const Tensor mask = flags({true, false, true}, {3});
  rows.push_back({"where",
                  [](const Inputs& in) { return Inputs{rill::where(in[2], in[0], in[1])}; },
                  {input({2, 3}, 410), input({2, 1}, 411), mask}});
  rows.push_back({"where",
                  [](const Inputs& in) { return Inputs{rill::where(in[2], in[0], in[1])}; },
                  {input({}, 412), input({3}, 413), flags({true, false, false, true}, {4, 1})}});
  rows.push_back({"masked_fill",
                  [](const Inputs& in) { return Inputs{rill::masked_fill(in[0], in[1], 2.5)}; },
                  {input({2, 3}, 414), mask}});
  return rows;
}

std::vector<GradcheckRow> rows_dropout() {
  std::vector<GradcheckRow> rows;
  for (const double p : {0.0, 0.4, 1.0}) {
    rows.push_back({"dropout",
                    [p](const Inputs& in) {
                      return Inputs{rill::dropout(in[0], p, {7, 1, 3})};
                    },
                    {input({3, 5}, 420)}});
  }
  return rows;
}

}  // namespace test
