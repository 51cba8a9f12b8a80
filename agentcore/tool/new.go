package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
)

// New makes a tool from a function over a typed input. The schema is derived from
// In, a struct: json names, `jsonschema:"…"` for descriptions, `enum:"a,b"` for
// the values of a string; a field is required unless it has omitempty. Arguments
// that do not fit are a failed Result that names the field, never an error. New
// fails only if In cannot be described or the name is not legal.
func New[In any](spec Spec, run func(context.Context, Call, In) (Result, error)) (Tool, error) {
	if !legalName.MatchString(spec.Name) {
		return nil, fmt.Errorf("tool: the name %q does not match %s", spec.Name, legalName)
	}
	schema, raw, err := schemaOf(reflect.TypeFor[In]())
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", spec.Name, err)
	}
	spec.Schema = raw
	return &typed[In]{spec: spec, schema: schema, run: run}, nil
}

// Must is for tools whose input and name are constants of the program.
func Must(t Tool, err error) Tool {
	if err != nil {
		panic(err)
	}
	return t
}

// Failure is a failed Result with a text for the model.
func Failure(format string, args ...any) Result {
	return Result{Text: fmt.Sprintf(format, args...), Failed: true}
}

type typed[In any] struct {
	spec   Spec
	schema *jsonschema.Schema
	run    func(context.Context, Call, In) (Result, error)
}

func (t *typed[In]) Spec() Spec { return t.spec }

func (t *typed[In]) Run(ctx context.Context, c Call) (Result, error) {
	var in In
	if problem := t.decode(c.Arguments, &in); problem != "" {
		return Failure("Wrong arguments for %s: %s. %s", t.spec.Name, problem, fieldList(t.schema)), nil
	}
	return t.run(ctx, c, in)
}

// decode is strict, so that a misspelt field is told to the model rather than
// dropped.
func (t *typed[In]) decode(args []byte, in *In) string {
	if len(args) == 0 || string(args) == "null" {
		args = []byte("{}") // how several models call a tool without fields
	}
	if !json.Valid(args) {
		return "they are not valid JSON"
	}
	if problem := check(t.schema, args, ""); problem != "" {
		return problem
	}
	if err := json.Unmarshal(args, in); err != nil {
		return err.Error()
	}
	return ""
}
