// Package componenttest tests operators of components on a real API server.
//
// [CrashSweep] kills an operator before and after each of its writes and checks that nothing is leaked,
// that nothing is deleted that should stay, and that the next process finishes the work:
//
//	componenttest.CrashSweep(t, componenttest.Sweep[*v1.Shop]{
//		Config: testenv.Start(t), AddToScheme: v1.AddToScheme,
//		Renderer: renderer, Options: options,
//		Versions: []*v1.Shop{small, large, small},
//	})
//
// [Golden] compares what a renderer returns with a file. [Play] makes workloads ready where no controllers
// run; [Observe] and [Finish] play the controller of one object.
package componenttest
