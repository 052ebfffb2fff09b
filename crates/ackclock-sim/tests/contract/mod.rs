//! What holds for every congestion control and every queue discipline of the lists, with the parameters of
//! their cards: new ones are tested as soon as they have a line in the list.

mod controllers;
mod disciplines;
mod parameters;
