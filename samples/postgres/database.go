package postgres

import (
	"context"
	"fmt"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/samples/postgres/api/v1alpha1"
)

// Databases is the driver of databases.
type Databases struct{}

// LiveDatabase is a database as the server has it.
type LiveDatabase struct {
	Owner, Encoding, Comment string
	ConnectionLimit          int32
	// wanted is the owner that the object asks for, by its name on the server; empty if that is not known.
	wanted string
}

// The compiler checks that the driver has the methods that it is meant to have.
var (
	_ external.Driver[*v1alpha1.Database, *Client, LiveDatabase]  = Databases{}
	_ external.Updater[*v1alpha1.Database, *Client, LiveDatabase] = Databases{}
	_ external.Marker[*v1alpha1.Database, *Client]                = Databases{}
	_ external.Unmarker[*v1alpha1.Database, *Client]              = Databases{}
	_ external.Reflector[*v1alpha1.Database, LiveDatabase]        = Databases{}
	_ external.Namer[*v1alpha1.Database]                          = Databases{}
	_ external.Dependent[*v1alpha1.Database]                      = Databases{}
	_ external.Classifier                                         = Databases{}
)

// ExternalName implements [external.Namer].
func (Databases) ExternalName(d *v1alpha1.Database) (string, error) { return checkName(d.SQLName()) }

// DependsOn implements [external.Dependent].
func (Databases) DependsOn(d *v1alpha1.Database) []external.Dependency {
	if d.Spec.Owner == "" && d.Name != "" {
		return nil
	}
	return []external.Dependency{{Role: "owner", To: &v1alpha1.Role{}, Name: d.Spec.Owner}}
}

// Classify implements [external.Classifier].
func (Databases) Classify(err error) external.Class { return classify(err) }

// Observe implements [external.Driver].
func (Databases) Observe(ctx context.Context, r external.ObserveRequest[*v1alpha1.Database, *Client]) (external.Observation[LiveDatabase], error) {
	var have LiveDatabase
	found, err := r.Client.query(ctx, `SELECT pg_get_userbyid(datdba), pg_encoding_to_char(encoding), datconnlimit, coalesce(shobj_description(oid, 'pg_database'), '')
		FROM pg_database WHERE datname = $1`, []any{r.ID}, &have.Owner, &have.Encoding, &have.ConnectionLimit, &have.Comment)
	if err != nil || !found {
		return external.Missing[LiveDatabase](), err
	}
	if owner, is := r.Dependencies["owner"].(*v1alpha1.Role); is {
		have.wanted = owner.SQLName()
	}
	return external.Available(have, markOf(have.Comment)), nil
}

// Compare implements [external.Driver].
func (Databases) Compare(r external.CompareRequest[*v1alpha1.Database, LiveDatabase]) external.Changes {
	return external.Diff(
		external.Optional("spec.owner", r.Have.wanted, r.Have.Owner),
		external.Immutable(external.Optional("spec.encoding", r.Object.Spec.Encoding, r.Have.Encoding)),
		external.Field("spec.connectionLimit", r.Object.Spec.ConnectionLimit, r.Have.ConnectionLimit),
	)
}

// Create implements [external.Driver]. PostgreSQL marks databases in a second statement.
func (Databases) Create(ctx context.Context, r external.CreateRequest[*v1alpha1.Database, *Client]) (external.CreateResponse[LiveDatabase], error) {
	statement := "CREATE DATABASE " + name(r.ID)
	if owner, is := r.Dependencies["owner"].(*v1alpha1.Role); is {
		statement += " OWNER " + name(owner.SQLName())
	}
	if e := r.Object.Spec.Encoding; e != "" {
		statement += " ENCODING " + text(e) + " TEMPLATE template0"
	}
	if n := r.Object.Spec.ConnectionLimit; n != nil {
		statement += fmt.Sprintf(" CONNECTION LIMIT %d", *n)
	}
	return external.CreateResponse[LiveDatabase]{}, r.Client.exec(ctx, statement)
}

// Mark implements [external.Marker].
func (d Databases) Mark(ctx context.Context, r external.MarkRequest[*v1alpha1.Database, *Client]) (external.MarkResponse, error) {
	return external.MarkResponse{}, d.comment(ctx, r.Client, r.ID, func(comment string) string { return marked(comment, r.Mark) })
}

// Unmark implements [external.Unmarker].
func (d Databases) Unmark(ctx context.Context, r external.UnmarkRequest[*v1alpha1.Database, *Client]) (external.UnmarkResponse, error) {
	seen, err := d.Observe(ctx, external.ObserveRequest[*v1alpha1.Database, *Client]{Client: r.Client, ID: r.ID})
	if err != nil || seen.Phase == external.PhaseMissing {
		return external.UnmarkResponse{}, err
	}
	return external.UnmarkResponse{}, d.comment(ctx, r.Client, r.ID, unmarked)
}

// comment changes the comment on a database, of which users may have written a part.
func (d Databases) comment(ctx context.Context, c *Client, id string, change func(string) string) error {
	seen, err := d.Observe(ctx, external.ObserveRequest[*v1alpha1.Database, *Client]{Client: c, ID: id})
	switch {
	case err != nil:
		return err
	case seen.Phase == external.PhaseMissing: // COMMENT would only warn
		return fmt.Errorf("there is no database %q", id)
	}
	return c.exec(ctx, "COMMENT ON DATABASE "+name(id)+" IS "+text(change(seen.Have.Comment)))
}

// Update implements [external.Updater].
func (Databases) Update(ctx context.Context, r external.UpdateRequest[*v1alpha1.Database, *Client, LiveDatabase]) (external.UpdateResponse[LiveDatabase], error) {
	var statements []string
	if r.Changes.Has("spec.owner") {
		statements = append(statements, "ALTER DATABASE "+name(r.ID)+" OWNER TO "+name(r.Have.wanted))
	}
	if r.Changes.Has("spec.connectionLimit") {
		statements = append(statements, fmt.Sprintf("ALTER DATABASE %s CONNECTION LIMIT %d", name(r.ID), *r.Object.Spec.ConnectionLimit))
	}
	return external.UpdateResponse[LiveDatabase]{}, r.Client.transact(ctx, statements...)
}

// Delete implements [external.Driver]. PostgreSQL refuses to drop a database to which somebody is connected.
func (Databases) Delete(ctx context.Context, r external.DeleteRequest[*v1alpha1.Database, *Client]) (external.DeleteResponse, error) {
	return external.DeleteResponse{Gone: true}, r.Client.exec(ctx, "DROP DATABASE IF EXISTS "+name(r.ID))
}

// Reflect implements [external.Reflector].
func (Databases) Reflect(r external.ReflectRequest[*v1alpha1.Database, LiveDatabase]) {
	r.Object.Status.Encoding = r.Have.Encoding
}
