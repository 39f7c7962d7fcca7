package external_test

import (
	"context"
	"fmt"

	"github.com/trimtab-dev/trimtab/external"
)

// region: connector

// accounts holds the credentials of each account.
type accounts map[string]string

func (a accounts) Scope(b *Bucket) (string, error) {
	if _, known := a[b.Spec.Account]; !known {
		return "", fmt.Errorf("there is no account %q; correct spec.account", b.Spec.Account)
	}
	return b.Spec.Account, nil
}

func (a accounts) Connect(_ context.Context, r external.ConnectRequest[*Bucket]) (external.ConnectResponse[store], error) {
	return external.ConnectResponse[store]{Client: login(r.Scope, a[r.Scope]), Endpoint: "account " + r.Scope}, nil
}

// endregion: connector

// login stands for the login of a real API.
func login(_, _ string) store { return store{} }

// Objects in different accounts use different clients.
func ExampleConnector() {
	connector := accounts{"shop": "t0ken", "staging": "s3cret"}
	controller := external.New(buckets{}, external.Options[*Bucket, store]{Connector: connector})
	fmt.Printf("%T\n", controller)

	for _, account := range []string{"shop", "stagin"} {
		scope, err := connector.Scope(&Bucket{Spec: BucketSpec{Account: account}})
		fmt.Printf("%q %v\n", scope, err)
	}
	// Output:
	// *loop.Controller[*github.com/trimtab-dev/trimtab/external_test.Bucket]
	// "shop" <nil>
	// "" there is no account "stagin"; correct spec.account
}
