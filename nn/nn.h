/// Everything of rill::nn.
#pragma once

#include <rill/nn/attention.h>
#include <rill/nn/bahdanau.h>
#include <rill/nn/decoder.h>
#include <rill/nn/dropout.h>
#include <rill/nn/embedding.h>
#include <rill/nn/gradcheck.h>
#include <rill/nn/gru.h>
#include <rill/nn/init.h>
#include <rill/nn/layer_norm.h>
#include <rill/nn/linear.h>
#include <rill/nn/module.h>
#include <rill/nn/rau.h>
#include <rill/nn/search.h>
#include <rill/nn/seq2seq.h>
#include <rill/nn/sequence.h>
