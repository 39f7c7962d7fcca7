package external_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
)

// region: connection

// shared are buckets that others connect to.
type shared struct{ buckets }

func (shared) Connection(b *Bucket) external.Connection {
	return external.Connection{
		To:        &api.SecretReference{Name: b.Name + "-connection"},
		Passwords: []string{"password"}, // the operator chooses it before it creates the bucket
		Once:      []string{"token"},    // the API returns it once, when it creates the bucket
	}
}

func (s shared) Observe(ctx context.Context, r external.ObserveRequest[*Bucket, store]) (external.Observation[bucket], error) {
	o, err := s.buckets.Observe(ctx, r)
	o.Details = map[string][]byte{"url": []byte("https://" + r.ID + ".example.org")}
	return o, err
}

func (shared) Create(_ context.Context, r external.CreateRequest[*Bucket, store]) (external.CreateResponse[bucket], error) {
	r.Client[r.ID] = bucket{quota: r.Object.Spec.Quota, tags: r.Mark} // and r.Passwords["password"]
	return external.CreateResponse[bucket]{Details: map[string][]byte{"token": []byte("t0ken")}}, nil
}

// endregion: connection

// The Secret of a bucket has a URL, a password and a token.
func ExampleConnectable() {
	b := &Bucket{ObjectMeta: metav1.ObjectMeta{Name: "images"}}
	kind, name := shared{}.Connection(b).To.Refers()
	fmt.Println(kind, name)
	// Output: Secret images-connection
}
