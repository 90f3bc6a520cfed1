// Says how Argo CD, Flux and kstatus see objects, by the libraries that these use: a Lua of Argo CD's build, Flux's evaluator of
// CEL, and kstatus. Reads JSON from stdin: the script and the expressions for a kind, and its objects. Writes a JSON list.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

type question struct {
	Script      string                           `json:"script"`
	Expressions kustomize.HealthCheckExpressions `json:"expressions"`
	Objects     []unstructured.Unstructured      `json:"objects"`
}

type verdict struct {
	ArgoCD  map[string]string `json:"argocd"`
	Flux    string            `json:"flux"`
	Kstatus string            `json:"kstatus"`
}

func main() {
	var asked question
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		fail(err)
	}
	evaluator, err := cel.NewStatusEvaluator(&asked.Expressions)
	if err != nil {
		fail(err)
	}
	verdicts := make([]verdict, 0, len(asked.Objects))
	for i := range asked.Objects {
		object := &asked.Objects[i]
		health, err := runScript(asked.Script, object.Object)
		if err != nil {
			fail(err)
		}
		computed, err := status.Compute(object)
		if err != nil {
			fail(err)
		}
		verdicts = append(verdicts, verdict{health, evaluate(evaluator, object), string(computed.Status)})
	}
	if err := json.NewEncoder(os.Stdout).Encode(verdicts); err != nil {
		fail(err)
	}
}

// An expression that asks for a field that is not there is an error, with which Flux goes on waiting.
func evaluate(evaluator *cel.StatusEvaluator, object *unstructured.Unstructured) string {
	result, err := evaluator.Evaluate(context.Background(), object)
	if err != nil {
		return "Error: " + err.Error()
	}
	return string(result.Status)
}

// Argo CD opens no other libraries but one of times: no strings, no files.
func runScript(script string, object map[string]any) (map[string]string, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.BaseLibName: lua.OpenBase,
		lua.TabLibName:  lua.OpenTable,
	} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return nil, err
		}
	}
	state.SetGlobal("obj", toLua(state, object))
	if err := state.DoString(script); err != nil {
		return nil, err
	}
	returned, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return nil, fmt.Errorf("the script returned %s, want a table", state.Get(-1).Type())
	}
	health := map[string]string{}
	returned.ForEach(func(key, value lua.LValue) { health[key.String()] = value.String() })
	return health, nil
}

func toLua(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case bool:
		return lua.LBool(value)
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	case string:
		return lua.LString(value)
	case []any:
		table := state.CreateTable(len(value), 0)
		for _, item := range value {
			table.Append(toLua(state, item))
		}
		return table
	case map[string]any:
		table := state.CreateTable(0, len(value))
		for key, item := range value {
			table.RawSetString(key, toLua(state, item))
		}
		return table
	}
	return lua.LNil
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
