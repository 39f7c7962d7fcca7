package postgres

import (
	"context"
	"fmt"
	"strconv"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/samples/postgres/api/v1alpha1"
)

// Roles is the driver of roles.
type Roles struct{}

// LiveRole is a role as the server has it.
type LiveRole struct {
	CreateDB, Login bool
	ConnectionLimit int32
	Comment         string
}

// The compiler checks that the driver has the methods that it is meant to have.
var (
	_ external.Driver[*v1alpha1.Role, *Client, LiveRole]  = Roles{}
	_ external.Updater[*v1alpha1.Role, *Client, LiveRole] = Roles{}
	_ external.Marker[*v1alpha1.Role, *Client]            = Roles{}
	_ external.Unmarker[*v1alpha1.Role, *Client]          = Roles{}
	_ external.Namer[*v1alpha1.Role]                      = Roles{}
	_ external.Connectable[*v1alpha1.Role]                = Roles{}
	_ external.Classifier                                 = Roles{}
)

// ExternalName implements [external.Namer].
func (Roles) ExternalName(r *v1alpha1.Role) (string, error) { return checkName(r.SQLName()) }

// Classify implements [external.Classifier].
func (Roles) Classify(err error) external.Class { return classify(err) }

// Connection implements [external.Connectable].
func (Roles) Connection(r *v1alpha1.Role) external.Connection {
	return external.Connection{To: &r.Spec.Connection, Passwords: []string{"password"}}
}

// Observe implements [external.Driver].
func (Roles) Observe(ctx context.Context, r external.ObserveRequest[*v1alpha1.Role, *Client]) (external.Observation[LiveRole], error) {
	var have LiveRole
	found, err := r.Client.query(ctx, `SELECT rolcreatedb, rolcanlogin, rolconnlimit, coalesce(shobj_description(oid, 'pg_authid'), '')
		FROM pg_roles WHERE rolname = $1`, []any{r.ID}, &have.CreateDB, &have.Login, &have.ConnectionLimit, &have.Comment)
	if err != nil || !found {
		return external.Missing[LiveRole](), err
	}
	o := external.Available(have, markOf(have.Comment))
	o.Details = map[string][]byte{
		"host": []byte(r.Client.host), "port": []byte(strconv.Itoa(int(r.Client.port))), "username": []byte(r.ID),
	}
	return o, nil
}

// Compare implements [external.Driver].
func (Roles) Compare(r external.CompareRequest[*v1alpha1.Role, LiveRole]) external.Changes {
	return external.Diff(
		external.Field("spec.createDB", r.Object.Spec.CreateDB, r.Have.CreateDB),
		external.Field("spec.connectionLimit", r.Object.Spec.ConnectionLimit, r.Have.ConnectionLimit),
		external.Field("spec.connection", r.Object.Spec.Connection.Name != "", r.Have.Login),
	)
}

// settings are what CREATE ROLE and ALTER ROLE have in common.
func settings(r *v1alpha1.Role, passwords map[string]string) (string, error) {
	out := " NOLOGIN"
	if r.Spec.Connection.Name != "" {
		out = " LOGIN"
	}
	if p := passwords["password"]; p != "" {
		v, err := verifier(p)
		if err != nil {
			return "", err
		}
		out += " PASSWORD " + text(v)
	}
	if b := r.Spec.CreateDB; b != nil && *b {
		out += " CREATEDB"
	} else if b != nil {
		out += " NOCREATEDB"
	}
	if n := r.Spec.ConnectionLimit; n != nil {
		out += fmt.Sprintf(" CONNECTION LIMIT %d", *n)
	}
	return out, nil
}

// Create implements [external.Driver].
func (Roles) Create(ctx context.Context, r external.CreateRequest[*v1alpha1.Role, *Client]) (external.CreateResponse[LiveRole], error) {
	with, err := settings(r.Object, r.Passwords)
	if err != nil {
		return external.CreateResponse[LiveRole]{}, err
	}
	return external.CreateResponse[LiveRole]{}, r.Client.transact(ctx,
		"CREATE ROLE "+name(r.ID)+with, "COMMENT ON ROLE "+name(r.ID)+" IS "+text(marked("", r.Mark)))
}

// Update implements [external.Updater].
func (Roles) Update(ctx context.Context, r external.UpdateRequest[*v1alpha1.Role, *Client, LiveRole]) (external.UpdateResponse[LiveRole], error) {
	with, err := settings(r.Object, r.Passwords)
	if err != nil {
		return external.UpdateResponse[LiveRole]{}, err
	}
	return external.UpdateResponse[LiveRole]{}, r.Client.exec(ctx, "ALTER ROLE "+name(r.ID)+with)
}

// Delete implements [external.Driver]. PostgreSQL refuses to drop a role that owns something.
func (Roles) Delete(ctx context.Context, r external.DeleteRequest[*v1alpha1.Role, *Client]) (external.DeleteResponse, error) {
	return external.DeleteResponse{Gone: true}, r.Client.exec(ctx, "DROP ROLE IF EXISTS "+name(r.ID))
}

// Mark implements [external.Marker].
func (d Roles) Mark(ctx context.Context, r external.MarkRequest[*v1alpha1.Role, *Client]) (external.MarkResponse, error) {
	return external.MarkResponse{}, d.comment(ctx, r.Client, r.ID, func(comment string) string { return marked(comment, r.Mark) })
}

// Unmark implements [external.Unmarker].
func (d Roles) Unmark(ctx context.Context, r external.UnmarkRequest[*v1alpha1.Role, *Client]) (external.UnmarkResponse, error) {
	seen, err := d.Observe(ctx, external.ObserveRequest[*v1alpha1.Role, *Client]{Client: r.Client, ID: r.ID})
	if err != nil || seen.Phase == external.PhaseMissing {
		return external.UnmarkResponse{}, err
	}
	return external.UnmarkResponse{}, d.comment(ctx, r.Client, r.ID, unmarked)
}

func (d Roles) comment(ctx context.Context, c *Client, id string, change func(string) string) error {
	seen, err := d.Observe(ctx, external.ObserveRequest[*v1alpha1.Role, *Client]{Client: c, ID: id})
	if err != nil {
		return err
	}
	return c.exec(ctx, "COMMENT ON ROLE "+name(id)+" IS "+text(change(seen.Have.Comment)))
}
