// Package storetest is the one suite that every gale.Store passes: what the
// contract in package gale says, as tests.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Harness {
//			return storetest.Harness{Store: memstore.New(memstore.Config{})}
//		})
//	}
//
// Run it under the race detector too. Keys are random, so the tests of one
// run can share one server.
package storetest
