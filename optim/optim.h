/// All of rill::optim: optimisers, clipping, schedules.
#pragma once

#include <rill/optim/adadelta.h>
#include <rill/optim/adagrad.h>
#include <rill/optim/adam.h>
#include <rill/optim/clip.h>
#include <rill/optim/optimizer.h>
#include <rill/optim/rmsprop.h>
#include <rill/optim/schedule.h>
#include <rill/optim/sgd.h>
