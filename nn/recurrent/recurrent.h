/// Recurrent layers whose unit is chosen at run time, and their ops on weights of one's own.
///
/// T steps, B sequences, I input and H hidden features, D directions (2 when bidirectional).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <rill/core/error.h>
#include <rill/nn/recurrent/gru.h>
#include <rill/nn/recurrent/lstm.h>
#include <rill/nn/recurrent/rau.h>

#pragma GCC visibility push(default)

namespace rill::nn {

/// The units there are.
enum class Cell : std::uint8_t { gru, lstm, rau };

namespace detail {
inline const Unit& unit_of(Cell cell) {
  switch (cell) {
    case Cell::gru:
      return gru_unit;
    case Cell::lstm:
      return lstm_unit;
    case Cell::rau:
      return rau_unit;
  }
  fail("Cell: there is no unit {}", static_cast<int>(cell));
}
}  // namespace detail

/// Every unit.
inline constexpr std::array cells{Cell::gru, Cell::lstm, Cell::rau};

/// The name of a unit: "gru".
const char* name(Cell cell);
/// The unit of that name, in small letters or capitals.
std::optional<Cell> cell_named(std::string_view name);

/// A layer over T steps as one op: x [T, B, I] → output [T, B, D·H], last state [D, B, H].
///
/// `directions`: forward, or forward and backward (which starts at each sequence's last valid step; its
/// states stand behind the forward ones in the output). The initial state is [D, B, H]. Past a sequence's
/// length the output is 0 and x gets no gradient. The input side of all steps is one product, the hidden side
/// a small product a step with packed weights; a ragged batch costs its valid steps only. The bits do not
/// depend on the number of threads. Throws "gru: …" (the unit's name) for shapes, dtypes or lengths that do
/// not fit.
RecurrentOutput recurrent_sequence(Cell cell, const Tensor& x, std::span<const RecurrentWeights> directions,
                                   const RecurrentInputs& given = {});

namespace reference {
/// One step made of plain ops: x [B, I], state [B, H] → the new state.
RecurrentState recurrent_step(Cell cell, const Tensor& x, const RecurrentState& state,
                              const RecurrentWeights& w);
/// The definition of recurrent_sequence: T times recurrent_step, with masks for ragged batches.
RecurrentOutput recurrent_sequence(Cell cell, const Tensor& x, std::span<const RecurrentWeights> directions,
                                   const RecurrentInputs& given = {});
}  // namespace reference

/// Options of Recurrent, with PyTorch's names.
struct RecurrentOptions {
  Cell cell = Cell::gru;               ///< recurrent unit
  RecurrentLayersOptions layers = {};  ///< sizes, layers, directions
};

/// Layers of the unit `cell`: a GRU, LSTM or RAU with the parameters that those have.
class Recurrent final : public RecurrentLayers {
 public:
  /// Throws unless the sizes are at least 1 and dropout lies in 0 … 1.
  Recurrent(const RecurrentOptions& options, Rng& rng);
  /// x [T, B, I] → output [T, B, D·H], last state [layers · D, B, H]. Throws "gru: …" (the unit's name)
  /// naming both sides when a size of x, state or lengths does not fit.
  RecurrentOutput operator()(const Tensor& x, const RecurrentInputs& given = {}) const;

  /// As given.
  RecurrentOptions options() const { return {cell_, RecurrentLayers::options()}; }

 private:
  Cell cell_;
};

}  // namespace rill::nn

#pragma GCC visibility pop
