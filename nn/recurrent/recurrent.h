/// Recurrent layers whose unit is chosen at run time, and the underlying ops for custom weights.
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

/// The recurrent units.
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

/// All units.
inline constexpr std::array cells{Cell::gru, Cell::lstm, Cell::rau};

/// The name of a unit: "gru".
const char* name(Cell cell);
/// The unit with that name, in lower or upper case; nullopt if there is none.
std::optional<Cell> cell_named(std::string_view name);

/// A layer over T steps as one op: x [T, B, I] → output [T, B, D·H], last state [D, B, H].
///
/// `directions`: the weights of the forward direction, or of forward and backward. The backward direction
/// starts at each sequence's last valid step; its states follow the forward ones in the output. The initial
/// state is [D, B, H]. Past a sequence's length the output is 0 and x gets no gradient. The input products of
/// all steps are computed as one; the hidden products, one per step, use packed weights. A ragged batch costs
/// only its valid steps. Results are bitwise the same for any number of threads. Throws "gru: …" (the unit's
/// name) for shapes, dtypes or lengths that do not match.
RecurrentOutput recurrent_sequence(Cell cell, const Tensor& x, std::span<const RecurrentWeights> directions,
                                   const RecurrentInputs& given = {});

namespace reference {
/// One step, composed of core ops: x [B, I], state [B, H] → the new state.
RecurrentState recurrent_step(Cell cell, const Tensor& x, const RecurrentState& state,
                              const RecurrentWeights& w);
/// The definition of recurrent_sequence: recurrent_step for each of T steps, with masks for ragged batches.
RecurrentOutput recurrent_sequence(Cell cell, const Tensor& x, std::span<const RecurrentWeights> directions,
                                   const RecurrentInputs& given = {});
}  // namespace reference

/// Options of Recurrent, with PyTorch's names.
struct RecurrentOptions {
  Cell cell = Cell::gru;               ///< unit
  RecurrentLayersOptions layers = {};  ///< sizes, layers, directions
};

/// Layers of the unit `cell`: a GRU, LSTM or RAU with the same parameters.
class Recurrent final : public RecurrentLayers {
 public:
  /// Throws unless the sizes are at least 1 and dropout is in 0 … 1.
  Recurrent(const RecurrentOptions& options, Rng& rng);
  /// x [T, B, I] → output [T, B, D·H], last state [layers · D, B, H]. Throws "gru: …" (the unit's name)
  /// naming both sides if the sizes of x, state or lengths do not match.
  RecurrentOutput operator()(const Tensor& x, const RecurrentInputs& given = {}) const;

  /// As passed to the constructor.
  RecurrentOptions options() const { return {cell_, RecurrentLayers::options()}; }

 private:
  Cell cell_;
};

}  // namespace rill::nn

#pragma GCC visibility pop
