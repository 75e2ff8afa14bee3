#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include <rill/core/error.h>
#include <translator/evaluate/heat_map.h>

using translator::heat_map_svg;
using translator::HeatMap;

namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) {
    ++n;
  }
  return n;
}

/// Whether tags are balanced and every & and < in text is escaped.
bool is_well_formed(const std::string& xml) {
  std::vector<std::string> open;
  for (std::size_t at = 0; at < xml.size(); ++at) {
    if (xml[at] == '&') {
      const std::string name = xml.substr(at, xml.find(';', at) - at + 1);
      if (name != "&amp;" && name != "&lt;" && name != "&gt;" && name != "&quot;") {
        return false;
      }
    }
    if (xml[at] != '<') {
      continue;
    }
    const std::size_t end = xml.find('>', at);
    const std::string tag = xml.substr(at + 1, end - at - 1);
    if (end == std::string::npos || tag.find('<') != std::string::npos || count(tag, "\"") % 2 != 0) {
      return false;
    }
    const std::string name = tag.substr(0, tag.find(' '));
    if (tag.front() == '/') {
      if (open.empty() || "/" + open.back() != name) {
        return false;
      }
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    at = end;
  }
  return open.empty();
}

}  // namespace

TEST_CASE("heat map: a square for each weight and a label for each word") {
  const std::vector<float> weights = {0.9F, 0.1F, 0.0F, 0.05F, 0.25F, 0.7F};
  const std::string svg = heat_map_svg(
      {.title = "\"a <b> & c\"", .rows = {"un", "<unk>"}, .columns = {"a", "b&", "c"}, .weights = weights});
  CHECK(is_well_formed(svg));
  CHECK(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  CHECK(count(svg, "<g><title>") == 6);
  CHECK(count(svg, "&quot;a &lt;b&gt; &amp; c&quot;") == 1);
  CHECK(count(svg, "<title>&lt;unk&gt; ← c: 0.700</title>") == 1);
  CHECK(count(svg, ">0.90</text>") == 1);
  CHECK(count(svg, ">0.05</text>") == 0);  // too small to be labelled
  CHECK(count(svg, ">un</text>") == 1);
  CHECK(count(svg, "rotate(-45)\">b&amp;</text>") == 1);
  CHECK(count(svg, "url(#scale)") == 1);
}

TEST_CASE("heat map: unusual words are escaped and weights are clamped") {
  const std::vector<float> weights = {1.0001F, -1e-6F};
  const std::string svg = heat_map_svg(
      {.title = "", .rows = {"\x1b[31m\xff"}, .columns = {"今", "\u202e]]>"}, .weights = weights});
  CHECK(is_well_formed(svg));
  CHECK(svg.find('\x1b') == std::string::npos);
  CHECK(count(svg, ": 1.000</title>") == 1);
  CHECK(count(svg, ": 0.000</title>") == 1);
}

TEST_CASE("heat map: larger weights have darker squares") {
  const auto brightness = [](float weight) {
    const std::vector<float> weights = {weight};
    const std::string svg = heat_map_svg({.title = "", .rows = {"a"}, .columns = {"b"}, .weights = weights});
    const std::size_t at = svg.find("fill=\"#", svg.find("<g>")) + 7;
    int sum = 0;
    for (std::size_t i = 0; i < 6; i += 2) {
      sum += std::stoi(svg.substr(at + i, 2), nullptr, 16);
    }
    return sum;
  };
  for (int i = 1; i <= 50; ++i) {
    CHECK(brightness(0.02F * static_cast<float>(i)) < brightness(0.02F * static_cast<float>(i - 1)));
  }
}

TEST_CASE("heat map: mismatched sizes and invalid weights are errors") {
  const std::vector<float> two = {0.5F, 0.5F}, odd = {NAN, 1};
  CHECK_THROWS_AS(heat_map_svg({.title = "", .rows = {}, .columns = {"a"}, .weights = {}}), rill::Error);
  CHECK_THROWS_WITH_AS(heat_map_svg({.title = "", .rows = {"a"}, .columns = {"b"}, .weights = two}),
                       "heat map: 2 weights for 1 rows and 1 columns", rill::Error);
  CHECK_THROWS_WITH_AS(heat_map_svg({.title = "", .rows = {"a"}, .columns = {"b", "c"}, .weights = odd}),
                       "heat map: a weight is not finite", rill::Error);
}
