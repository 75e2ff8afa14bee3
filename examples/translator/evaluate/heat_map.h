/// Attention weights as an SVG image.
#pragma once

#include <span>
#include <string>

#include <translator/text/tokenizer.h>

namespace translator {

/// Attention weights between two sentences.
struct HeatMap {
  std::string title;               ///< shown above; may be empty
  Tokens rows;                     ///< target words, top to bottom
  Tokens columns;                  ///< source words, left to right
  std::span<const float> weights;  ///< [rows, columns], each in 0 to 1
};

/// A self-contained SVG image with a labelled square per weight and a scale from 0 to 1.
///
/// Throws rill::Error if a side is empty, the number of weights is not rows × columns, or a weight is not
/// finite. Weights outside 0 to 1 are drawn as 0 or 1.
std::string heat_map_svg(const HeatMap& map);

}  // namespace translator
