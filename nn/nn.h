/// Everything of rill::nn.
#pragma once

#include <rill/nn/attention/attention.h>
#include <rill/nn/gradcheck.h>
#include <rill/nn/init.h>
#include <rill/nn/layers/dropout.h>
#include <rill/nn/layers/embedding.h>
#include <rill/nn/layers/layer_norm.h>
#include <rill/nn/layers/linear.h>
#include <rill/nn/module.h>
#include <rill/nn/recurrent/recurrent.h>
#include <rill/nn/seq2seq/bahdanau.h>
#include <rill/nn/seq2seq/batching.h>
#include <rill/nn/seq2seq/beam_search.h>
#include <rill/nn/seq2seq/decoder.h>
#include <rill/nn/seq2seq/seq2seq.h>
