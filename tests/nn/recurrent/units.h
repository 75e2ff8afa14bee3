/// The units as types for templated test cases, and small layers of them.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>

#include <rill/core/core.h>
#include <rill/nn/recurrent/recurrent.h>
#include <rill/nn/recurrent/unit.h>

namespace test {

using namespace rill;

struct Gru {
  static constexpr nn::Cell cell = nn::Cell::gru;
  static constexpr const char* weight = "weight_hh_l0";
};

struct Lstm {
  static constexpr nn::Cell cell = nn::Cell::lstm;
  static constexpr const char* weight = "weight_hh_l0";
};

struct Rau {
  static constexpr nn::Cell cell = nn::Cell::rau;
  static constexpr const char* weight = "cells.0.weight_aa";
};

inline Tensor random(const Shape& shape, std::uint64_t seed) {
  Rng rng(seed);
  return randn(shape, rng);
}

template <class Unit>
nn::Recurrent make_layers(const nn::RecurrentLayersOptions& options) {
  Rng rng(3);
  return nn::Recurrent({.cell = Unit::cell, .layers = options}, rng);
}

template <class Unit>
nn::Recurrent small_layer(std::int64_t input = 4, std::int64_t hidden = 5) {
  return make_layers<Unit>({.input_size = input, .hidden_size = hidden});
}

/// A random state of a unit; c is undefined where it has none.
template <class Unit>
nn::RecurrentState random_state(const Shape& shape) {
  return {random(shape, 1), nn::detail::unit_of(Unit::cell).states == 2 ? random(shape, 2) : Tensor()};
}

}  // namespace test

TYPE_TO_STRING(test::Gru);
TYPE_TO_STRING(test::Lstm);
TYPE_TO_STRING(test::Rau);
