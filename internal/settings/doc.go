// Package settings reads the environment, once, into plain data.
//
// The variables are those of envoyproxy/ratelimit, with their documented
// meaning, and our own, which begin with GALE_. A variable that has no meaning
// here is accepted, and a notice says so. Everything that is wrong is reported
// at once, each problem with the variable, its value and the way out. An
// unknown GALE_ variable is a problem: a setting that silently does nothing is
// worse than a service that does not start.
//
// docs/configuration.md is written from the same declarations (WriteDocs).
package settings
