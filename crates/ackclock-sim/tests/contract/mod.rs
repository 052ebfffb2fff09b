//! Contract of every listed congestion control algorithm and queue discipline, with the parameters of
//! their algorithm specs: new ones are tested as soon as they have a line in the list.

mod controllers;
mod disciplines;
mod parameters;
