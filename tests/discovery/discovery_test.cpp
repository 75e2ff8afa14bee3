// Names that break naive test discovery. ctest must find and run every case.
#include <doctest/doctest.h>

TEST_CASE("discovery: plain name") { CHECK(true); }
TEST_CASE("discovery: commas, one, two, and \\, guarded") { CHECK(true); }
TEST_CASE("discovery: semicolon; and after") { CHECK(true); }
TEST_CASE("discovery: open [ bracket") { CHECK(true); }
TEST_CASE("discovery: shapes [T, B] -> [T]; brackets ]]") { CHECK(true); }
TEST_CASE("discovery: \"double\" and 'single' quotes") { CHECK(true); }
TEST_CASE("discovery: back\\slash, ${variable} $HOME `x` #1 @y@ (z)") { CHECK(true); }
TEST_CASE("discovery: star * and ? as themselves") { CHECK(true); }
TEST_CASE("discovery: größer als π") { CHECK(true); }
TEST_CASE_TEMPLATE("discovery: template", T, float, double) { CHECK(sizeof(T) >= 4); }
