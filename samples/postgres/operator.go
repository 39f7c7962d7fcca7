package postgres

import (
	"context"
	"embed"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/samples/postgres/api/v1alpha1"
)

// CRDs contains the CustomResourceDefinitions of the kinds.
//
//go:embed crds/*.yaml
var CRDs embed.FS

// Operator returns the options for [operator.Main].
func Operator() operator.Options {
	var drift time.Duration
	return operator.Options{
		Name: "postgres-operator", AddToScheme: v1alpha1.AddToScheme, CRDs: CRDs,
		Flags: func(f *pflag.FlagSet) {
			f.DurationVar(&drift, "drift-interval", 0, "how often servers are compared with the specs; 0 means 10m")
		},
		Controllers: func() ([]operator.Controller, error) { return Controllers(drift), nil },
	}
}

// Controllers returns the controllers of the operator. drift is how often servers are compared with the specs; 0 means 10
// minutes.
func Controllers(drift time.Duration) []operator.Controller {
	databases := options(drift, func(d *v1alpha1.Database) string { return d.Spec.Server })
	databases.MarkLater = true // CREATE DATABASE cannot be in a transaction with COMMENT
	roles := options(drift, func(r *v1alpha1.Role) string { return r.Spec.Server })
	grants := options(drift, func(g *v1alpha1.Grant) string { return g.Spec.Server })
	grants.Unmarked = true
	return []operator.Controller{external.New(Databases{}, databases), external.New(Roles{}, roles), external.New(Grants{}, grants)}
}

// options are those of a kind whose objects name their server.
func options[T external.Object](drift time.Duration, server func(T) string) external.Options[T, *Client] {
	config := external.Config[T, *v1alpha1.Server, *Client]{
		Of:          func(obj T) (types.NamespacedName, error) { return types.NamespacedName{Name: server(obj)}, nil },
		Credentials: func(s *v1alpha1.Server) []api.Reference { return []api.Reference{&s.Spec.Password} },
		Connect: func(ctx context.Context, s *v1alpha1.Server) (external.ConnectResponse[*Client], error) {
			c, err := Connect(ctx, s)
			if err != nil {
				return external.ConnectResponse[*Client]{}, err
			}
			return external.ConnectResponse[*Client]{Client: c, Endpoint: c.endpoint()}, nil
		},
	}
	return external.Options[T, *Client]{Connector: config.Connector(), DriftInterval: drift, CreateGrace: -1, UniqueNames: true}
}
