// Calls each method of franz-go's schema registry client and prints what was not as it should be, as JSON.
//
//	registrycalls URL
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"strings"

	"github.com/twmb/franz-go/pkg/sr"
)

var wrong = []string{}
var checked int

func same(what string, got, want any) {
	checked++
	if !reflect.DeepEqual(got, want) {
		wrong = append(wrong, fmt.Sprintf("%s: got %v, want %v", what, got, want))
	}
}

func fine(what string, err error) {
	checked++
	if err != nil {
		wrong = append(wrong, fmt.Sprintf("%s: %v", what, err))
	}
}

func refused(what string, err error, code int) {
	checked++
	var answer *sr.ResponseError
	if !errors.As(err, &answer) || answer.ErrorCode != code {
		wrong = append(wrong, fmt.Sprintf("%s: want error %d, got %v", what, code, err))
	}
}

const order = `{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"id","type":"long"}]}`
const wider = `{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"id","type":"long"},{"name":"note","type":["null","string"],"default":null}]}`
const narrower = `{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"id","type":"int"}]}`
const box = `{"type":"record","name":"Box","fields":[{"name":"order","type":"shop.Order"}]}`

func main() {
	ctx := context.Background()
	cl, err := sr.NewClient(sr.URLs(os.Args[1]))
	fine("NewClient", err)
	registering(ctx, cl)
	finding(ctx, cl)
	settings(ctx, cl)
	deleting(ctx, cl)
	contexts(ctx, cl)
	serde(ctx, cl)
	told, _ := json.Marshal(map[string]any{"checked": checked, "wrong": wrong})
	fmt.Println(string(told))
}

func registering(ctx context.Context, cl *sr.Client) {
	types, err := cl.SupportedTypes(ctx)
	fine("SupportedTypes", err)
	same("SupportedTypes", types, []sr.SchemaType{sr.TypeAvro, sr.TypeProtobuf, sr.TypeJSON}) // as it sorts them
	id, err := cl.RegisterSchema(ctx, "orders-value", sr.Schema{Schema: order}, -1, -1)
	fine("RegisterSchema", err)
	same("RegisterSchema", id, 1)
	created, err := cl.CreateSchema(ctx, "orders-value", sr.Schema{Schema: wider})
	fine("CreateSchema", err)
	same("CreateSchema", []any{created.Subject, created.Version, created.ID}, []any{"orders-value", 2, 2})
	_, err = cl.CreateSchema(ctx, "orders-value", sr.Schema{Schema: narrower})
	refused("CreateSchema incompatible", err, 40901)
	_, err = cl.CreateSchema(ctx, "orders-value", sr.Schema{Schema: `{"type":"record"}`})
	refused("CreateSchema invalid", err, 42201)
	reference := []sr.SchemaReference{{Name: "shop.Order", Subject: "orders-value", Version: 1}}
	made, err := cl.CreateSchema(ctx, "boxes-value", sr.Schema{Schema: box, References: reference})
	fine("CreateSchema with references", err)
	same("CreateSchema with references", made.References, reference)
	rules := &sr.SchemaRuleSet{DomainRules: []sr.SchemaRule{{
		Name: "positive", Kind: sr.SchemaRuleKindCondition, Mode: sr.SchemaRuleModeWrite, Type: "CEL",
		Tags: []string{"t"}, Expr: "message.id > 0", OnFailure: "ERROR",
	}}}
	metadata := &sr.SchemaMetadata{
		Tags: map[string][]string{"**.id": {"PII"}}, Properties: map[string]string{"owner": "shop"}, Sensitive: []string{"s"},
	}
	full := sr.Schema{Schema: order, SchemaMetadata: metadata, SchemaRuleSet: rules}
	described, err := cl.CreateSchema(ctx, "described-value", full)
	fine("CreateSchema with metadata", err)
	same("metadata", described.SchemaMetadata, metadata)
	same("rules", described.SchemaRuleSet, rules)
	found, err := cl.LookupSchema(ctx, "orders-value", sr.Schema{Schema: order})
	fine("LookupSchema", err)
	same("LookupSchema", []any{found.Subject, found.Version, found.ID}, []any{"orders-value", 1, 1})
	_, err = cl.LookupSchema(ctx, "orders-value", sr.Schema{Schema: `"string"`})
	refused("LookupSchema", err, 40403)
	fine("SetMode", cl.SetMode(sr.WithParams(ctx, sr.Force), sr.ModeImport, "imported-value")[0].Err)
	imported, err := cl.CreateSchemaWithIDAndVersion(ctx, "imported-value", sr.Schema{Schema: `"bytes"`}, 5000, 7)
	fine("CreateSchemaWithIDAndVersion", err)
	same("CreateSchemaWithIDAndVersion", []any{imported.ID, imported.Version}, []any{5000, 7})
}

func finding(ctx context.Context, cl *sr.Client) {
	subjects, err := cl.Subjects(ctx)
	fine("Subjects", err)
	same("Subjects", subjects, []string{"boxes-value", "described-value", "imported-value", "orders-value"})
	subjects, err = cl.Subjects(sr.WithParams(ctx, sr.SubjectPrefix("or"), sr.Limit(1)))
	fine("Subjects", err)
	same("Subjects with a prefix", subjects, []string{"orders-value"})
	schema, err := cl.SchemaByID(sr.WithParams(ctx, sr.FetchMaxID), 1)
	fine("SchemaByID", err)
	same("SchemaByID", schema.Schema, order)
	_, err = cl.SchemaByID(ctx, 77)
	refused("SchemaByID", err, 40403)
	version, err := cl.SchemaByVersion(ctx, "orders-value", -1)
	fine("SchemaByVersion", err)
	same("SchemaByVersion", []any{version.Version, version.Schema.Schema}, []any{2, wider})
	byGUID, err := cl.SchemaByGUID(ctx, version.GUID)
	fine("SchemaByGUID", err)
	same("SchemaByGUID", byGUID.Schema.Schema, wider)
	ids, err := cl.SchemaIDsByGUID(ctx, version.GUID)
	fine("SchemaIDsByGUID", err)
	same("SchemaIDsByGUID", ids, []sr.ContextID{{Context: ".", ID: 2}})
	text, err := cl.SchemaTextByID(ctx, 1)
	fine("SchemaTextByID", err)
	same("SchemaTextByID", text, order)
	text, err = cl.SchemaTextByVersion(ctx, "orders-value", 1)
	fine("SchemaTextByVersion", err)
	same("SchemaTextByVersion", text, order)
	names, err := cl.SubjectsByID(ctx, 2)
	fine("SubjectsByID", err)
	same("SubjectsByID", names, []string{"orders-value"})
	places, err := cl.SchemaVersionsByID(ctx, 2)
	fine("SchemaVersionsByID", err)
	same("SchemaVersionsByID", places, []sr.SubjectVersion{{Subject: "orders-value", Version: 2}})
	versions, err := cl.SubjectVersions(ctx, "orders-value")
	fine("SubjectVersions", err)
	same("SubjectVersions", versions, []int{1, 2})
	all, err := cl.AllSchemas(ctx)
	fine("AllSchemas", err)
	same("AllSchemas", len(all), 5)
	latest, err := cl.AllSchemas(sr.WithParams(ctx, sr.LatestOnly))
	fine("AllSchemas", err)
	same("AllSchemas, the latest", len(latest), 4)
	own, err := cl.Schemas(ctx, "orders-value")
	fine("Schemas", err)
	same("Schemas", len(own), 2)
	using, err := cl.SchemaReferences(ctx, "orders-value", 1)
	fine("SchemaReferences", err)
	names = []string{}
	for _, one := range using {
		names = append(names, one.Subject)
	}
	same("SchemaReferences", names, []string{"boxes-value"})
	usages, err := cl.SchemaUsagesByID(ctx, 1)
	fine("SchemaUsagesByID", err)
	same("SchemaUsagesByID", len(usages) >= 1, true)
}

func settings(ctx context.Context, cl *sr.Client) {
	same("Compatibility", cl.Compatibility(ctx)[0].Level, sr.CompatBackward)
	wanted := sr.SetCompatibility{
		Level: sr.CompatFull, Alias: "orders-value", Normalize: true, Group: "app",
		DefaultMetadata: &sr.SchemaMetadata{Properties: map[string]string{"a": "b"}},
	}
	set := cl.SetCompatibility(ctx, wanted, "settings-value")[0]
	fine("SetCompatibility", set.Err)
	got := cl.Compatibility(ctx, "settings-value")[0]
	fine("Compatibility", got.Err)
	same("Compatibility", []any{got.Level, got.Alias, got.Normalize, got.Group}, []any{sr.CompatFull, "orders-value", true, "app"})
	same("Compatibility", got.DefaultMetadata, wanted.DefaultMetadata)
	fine("ResetCompatibility", cl.ResetCompatibility(ctx, "settings-value")[0].Err)
	refused("Compatibility", cl.Compatibility(ctx, "settings-value")[0].Err, 40408)
	inherited := cl.Compatibility(sr.WithParams(ctx, sr.DefaultToGlobal), "settings-value")[0]
	same("Compatibility by default", inherited.Level, sr.CompatBackward)
	check, err := cl.CheckCompatibility(sr.WithParams(ctx, sr.Verbose), "orders-value", -1, sr.Schema{Schema: narrower})
	fine("CheckCompatibility", err)
	same("CheckCompatibility", []any{check.Is, len(check.Messages) > 0}, []any{false, true})
	check, err = cl.CheckCompatibility(ctx, "orders-value", 1, sr.Schema{Schema: wider})
	fine("CheckCompatibility", err)
	same("CheckCompatibility", check.Is, true)
	same("Mode", cl.Mode(ctx)[0].Mode, sr.ModeReadWrite)
	fine("SetMode", cl.SetMode(ctx, sr.ModeReadOnly, "settings-value")[0].Err)
	same("Mode", cl.Mode(ctx, "settings-value")[0].Mode, sr.ModeReadOnly)
	fine("ResetMode", cl.ResetMode(ctx, "settings-value")[0].Err)
	refused("Mode", cl.Mode(ctx, "settings-value")[0].Err, 40409)
	same("Mode by default", cl.Mode(sr.WithParams(ctx, sr.DefaultToGlobal), "settings-value")[0].Mode, sr.ModeReadWrite)
}

func deleting(ctx context.Context, cl *sr.Client) {
	refused("DeleteSchema in use", cl.DeleteSchema(ctx, "orders-value", 1, sr.SoftDelete), 42206)
	fine("DeleteSchema", cl.DeleteSchema(ctx, "orders-value", 2, sr.SoftDelete))
	_, err := cl.SchemaByVersion(ctx, "orders-value", 2)
	refused("SchemaByVersion", err, 40402)
	_, err = cl.SchemaByVersion(sr.WithParams(ctx, sr.ShowDeleted), "orders-value", 2)
	fine("SchemaByVersion deleted", err)
	fine("DeleteSchema for good", cl.DeleteSchema(ctx, "orders-value", 2, sr.HardDelete))
	gone, err := cl.DeleteSubject(ctx, "boxes-value", sr.SoftDelete)
	fine("DeleteSubject", err)
	same("DeleteSubject", gone, []int{1})
	subjects, err := cl.Subjects(sr.WithParams(ctx, sr.DeletedOnly))
	fine("Subjects", err)
	same("Subjects deleted", subjects, []string{"boxes-value"})
	_, err = cl.DeleteSubject(ctx, "boxes-value", sr.HardDelete)
	fine("DeleteSubject for good", err)
	_, err = cl.DeleteSubject(ctx, "boxes-value", sr.HardDelete)
	refused("DeleteSubject", err, 40401)
}

func contexts(ctx context.Context, cl *sr.Client) {
	staging, err := sr.NewClient(sr.URLs(os.Args[1]), sr.DefaultSchemaContext(".staging"))
	fine("NewClient", err)
	made, err := staging.CreateSchema(ctx, "orders-value", sr.Schema{Schema: order})
	fine("CreateSchema in a context", err)
	same("CreateSchema in a context", []any{made.Subject, made.ID}, []any{":.staging:orders-value", 1})
	names, err := cl.Contexts(ctx)
	fine("Contexts", err)
	same("Contexts", names, []string{".", ".staging"})
	refused("DeleteContext", cl.DeleteContext(ctx, ".staging"), 42211)
	_, err = staging.DeleteSubject(ctx, "orders-value", sr.SoftDelete)
	fine("DeleteSubject in a context", err)
	_, err = staging.DeleteSubject(ctx, "orders-value", sr.HardDelete)
	fine("DeleteSubject in a context", err)
	fine("DeleteContext", cl.DeleteContext(ctx, ".staging"))
	asked := ""
	spying, err := sr.NewClient(sr.URLs(os.Args[1]), sr.PreReq(func(r *http.Request) error {
		asked = r.URL.EscapedPath()
		return nil
	}))
	fine("NewClient", err)
	_, err = spying.SubjectVersions(ctx, "a/b c")
	refused("SubjectVersions", err, 40401)
	same("a subject with a slash", strings.Contains(asked, "a%2Fb%20c"), true)
}

type Order struct{ ID int64 }

func serde(ctx context.Context, cl *sr.Client) {
	schema, err := cl.CreateSchema(ctx, "framed-value", sr.Schema{Schema: order})
	fine("CreateSchema", err)
	codec := sr.NewSerde()
	codec.Register(schema.ID, Order{}, sr.EncodeFn(json.Marshal), sr.DecodeFn(json.Unmarshal))
	written, err := codec.Encode(Order{7})
	fine("Encode", err)
	var read Order
	fine("Decode", codec.Decode(written, &read))
	same("Decode", read.ID, int64(7))
}
