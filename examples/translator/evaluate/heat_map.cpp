#include <translator/evaluate/heat_map.h>

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <string_view>

#include <rill/core/error.h>

namespace translator {
namespace {

constexpr double cell = 36;        // side of a square
constexpr double character = 8.4;  // width of a character of a label, about
constexpr double margin = 16;
constexpr double gap = 8;  // between labels and squares
constexpr double title_height = 28;
constexpr double scale_width = 14;  // of the scale at the right
constexpr double scale_room = 64;   // of the scale and its labels

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

/// The approximate width of a label in pixels: East Asian characters are wide, combining marks have none.
double width_of(std::string_view text) {
  double columns = 0;
  for (std::string_view rest = text; !rest.empty();) {
    utf8proc_int32_t code = 0;
    const auto bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(rest.data()),
                                        static_cast<utf8proc_ssize_t>(rest.size()), &code);
    columns += bytes > 0 ? utf8proc_charwidth(code) : 1;
    rest.remove_prefix(bytes > 0 ? static_cast<std::size_t>(bytes) : 1);
  }
  return columns * character;
}

double widest(const Tokens& labels) {
  double width = 0;
  for (const std::string& label : labels) {
    width = std::max(width, width_of(label));
  }
  return width;
}

using Rgb = std::array<double, 3>;

/// From nearly white over blue to dark blue: perceptually even, and legible in grey.
Rgb color_of(double weight) {
  static constexpr std::array<Rgb, 5> stops = {
      {{247, 250, 253}, {198, 219, 239}, {107, 174, 214}, {33, 113, 181}, {8, 48, 107}}};
  const double at = weight * (stops.size() - 1);
  const auto i = std::min(static_cast<std::size_t>(at), stops.size() - 2);
  Rgb color{};
  for (std::size_t c = 0; c < 3; ++c) {
    color[c] = std::lerp(stops[i][c], stops[i + 1][c], at - static_cast<double>(i));
  }
  return color;
}

std::string hex(const Rgb& color) {
  return fmt::format("#{:02x}{:02x}{:02x}", std::lround(color[0]), std::lround(color[1]),
                     std::lround(color[2]));
}

/// Writes the image; `left_` and `top_` are the corner of the first square.
class Painter {
 public:
  explicit Painter(const HeatMap& map)
      : map_(map),
        left_(margin + widest(map.rows) + gap),
        top_(margin + (map.title.empty() ? 0 : title_height) + widest(map.columns) * slope + character +
             gap) {}

  std::string paint() {
    const double rows = static_cast<double>(map_.rows.size());
    const double columns = static_cast<double>(map_.columns.size());
    // The last slanted label extends beyond its square, above the scale.
    const double slanted = width_of(map_.columns.back()) * slope + cell / 2;
    const double width = std::max({left_ + columns * cell + std::max(gap + scale_room, slanted) + margin,
                                   width_of(map_.title) * title_scale + 2 * margin});
    const double height = std::max(top_ + rows * cell, top_ + scale_height()) + margin;
    put("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0f}\" height=\"{:.0f}\" viewBox=\"0 0 {:.0f} "
        "{:.0f}\" "
        "font-family=\"DejaVu Sans, Noto Sans, Arial, sans-serif\" font-size=\"14\">\n",
        width, height, width, height);
    put("<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n");
    if (!map_.title.empty()) {
      put("<text x=\"{:.0f}\" y=\"{:.0f}\" font-size=\"16\" font-weight=\"bold\">{}</text>\n", margin,
          margin + 14, escape(map_.title));
    }
    labels();
    for (std::size_t i = 0; i < map_.rows.size(); ++i) {
      for (std::size_t j = 0; j < map_.columns.size(); ++j) {
        square(i, j);
      }
    }
    scale(left_ + columns * cell + gap * 2);
    return out_ + "</svg>\n";
  }

 private:
  static constexpr double slope = 0.71;  // sine of the 45 degrees by which the column labels are turned
  static constexpr double title_scale = 1.3;

  template <class... A>
  void put(fmt::format_string<A...> format, A&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<A>(args)...);
  }

  double scale_height() const {
    return std::clamp(static_cast<double>(map_.rows.size()) * cell, 2 * cell, 6 * cell);
  }

  void labels() {
    for (std::size_t i = 0; i < map_.rows.size(); ++i) {
      put("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\" dy=\".35em\">{}</text>\n", left_ - gap,
          top_ + (static_cast<double>(i) + 0.5) * cell, escape(map_.rows[i]));
    }
    for (std::size_t j = 0; j < map_.columns.size(); ++j) {
      put("<text transform=\"translate({:.1f} {:.1f}) rotate(-45)\">{}</text>\n",
          left_ + (static_cast<double>(j) + 0.5) * cell + 4, top_ - gap, escape(map_.columns[j]));
    }
  }

  void square(std::size_t row, std::size_t column) {
    const double weight =
        std::clamp(static_cast<double>(map_.weights[row * map_.columns.size() + column]), 0.0, 1.0);
    const double x = left_ + static_cast<double>(column) * cell;
    const double y = top_ + static_cast<double>(row) * cell;
    put("<g><title>{} ← {}: {:.3f}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.0f}\" height=\"{:.0f}\" "
        "fill=\"{}\" stroke=\"#d0d7de\"/>",
        escape(map_.rows[row]), escape(map_.columns[column]), weight, x, y, cell, cell,
        hex(color_of(weight)));
    if (weight >= 0.095) {  // at least 0.10 as printed
      put("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"11\" text-anchor=\"middle\" dy=\".35em\" "
          "fill=\"{}\">{:.2f}</text>",
          x + cell / 2, y + cell / 2, weight > 0.55 ? "white" : "#24292f", weight);
    }
    put("</g>\n");
  }

  void scale(double x) {
    const double height = scale_height();
    put("<defs><linearGradient id=\"scale\" x1=\"0\" y1=\"1\" x2=\"0\" y2=\"0\">");
    for (int i = 0; i <= 4; ++i) {
      put("<stop offset=\"{}\" stop-color=\"{}\"/>", 0.25 * i, hex(color_of(0.25 * i)));
    }
    put("</linearGradient></defs>\n<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.0f}\" height=\"{:.1f}\" "
        "fill=\"url(#scale)\" stroke=\"#8c959f\"/>\n",
        x, top_, scale_width, height);
    for (const double value : {0.0, 0.5, 1.0}) {
      put("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"11\" dy=\".35em\">{:.1f}</text>\n",
          x + scale_width + 5, top_ + (1 - value) * height, value);
    }
  }

  const HeatMap& map_;
  double left_;
  double top_;
  std::string out_;
};

}  // namespace

std::string heat_map_svg(const HeatMap& map) {
  rill::check(!map.rows.empty() && !map.columns.empty(), "heat map: {} rows and {} columns; both need a word",
              map.rows.size(), map.columns.size());
  rill::check(map.weights.size() == map.rows.size() * map.columns.size(),
              "heat map: {} weights for {} rows and {} columns", map.weights.size(), map.rows.size(),
              map.columns.size());
  const bool finite =
      std::all_of(map.weights.begin(), map.weights.end(), [](float w) { return std::isfinite(w); });
  rill::check(finite, "heat map: a weight is not finite");
  return Painter(map).paint();
}

}  // namespace translator
