// Package externaltest checks the driver of an external resource against its API, as package external relies on it. It finds
// mistakes that otherwise cost a resource, or updates without end:
//
//   - an Observe that does not find what Create made, reports an absent resource as an error, or changes something
//   - a Compare that differs from call to call, changes its object, sees differences after Create or Update, or misses a
//     change of the spec
//   - a Create that fails after its effect, ignores the ID, makes a second resource, or takes over that of another object
//   - a mark that is not stored, not returned, or lost in an update
//   - a Delete that fails when there is nothing to delete
//   - an identity that does not survive a crash: a token that makes a second resource, a Find that finds nothing
//
// It calls the driver alone; neither a cluster nor a controller takes part. In a test of the driver:
//
//	func TestBuckets(t *testing.T) {
//		externaltest.Run(t, buckets{}, externaltest.Fixture[*v1.Bucket, *store.Client]{
//			Client:  connect(t),
//			New:     func(name string) *v1.Bucket { return &v1.Bucket{Spec: v1.BucketSpec{Quota: 3}} },
//			Changes: map[string]func(*v1.Bucket){"quota": func(b *v1.Bucket) { b.Spec.Quota = 5 }},
//		})
//	}
package externaltest
