package external_test

import (
	"context"
	"fmt"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

// region: connector

// accounts holds the credentials of each account.
type accounts map[string]string

func (a accounts) Scope(t *thing.Thing) (string, error) {
	if _, known := a[t.Spec.Account]; !known {
		return "", fmt.Errorf("there is no account %q; correct spec.account", t.Spec.Account)
	}
	return t.Spec.Account, nil
}

func (a accounts) Connect(_ context.Context, r external.ConnectRequest[*thing.Thing]) (external.ConnectResponse[shelf], error) {
	return external.ConnectResponse[shelf]{Client: openShelf(r.Scope, a[r.Scope]), Endpoint: "account " + r.Scope}, nil
}

// endregion: connector

// openShelf stands for the login of a real API.
func openShelf(_, _ string) shelf { return shelf{} }

// Objects in different accounts use different clients.
func ExampleConnector() {
	connector := accounts{"shop": "t0ken", "staging": "s3cret"}
	controller := external.New(boxes{}, external.Options[*thing.Thing, shelf]{Connector: connector})
	fmt.Printf("%T\n", controller)

	for _, account := range []string{"shop", "stagin"} {
		scope, err := connector.Scope(&thing.Thing{Spec: thing.Spec{Account: account}})
		fmt.Printf("%q %v\n", scope, err)
	}
	// Output:
	// *loop.Controller[*github.com/trimtab-dev/trimtab/internal/thing.Thing]
	// "shop" <nil>
	// "" there is no account "stagin"; correct spec.account
}
