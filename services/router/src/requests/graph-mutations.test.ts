import { parsedEnsemble } from '@tutti/api/testing'
import { testFactor, testSeed } from '@tutti/chassis/testing'
import { checkEnsemble } from '@tutti/graph'
import { dice } from '@tutti/graph/testing'
import type { ModelConfig } from '@tutti/model-config'
import t from 'tap'
import { drawGraph } from '../testing/graphs/draw-graph.ts'
import { MUTATIONS } from '../testing/graphs/graph-mutations.ts'
import type { Mutant, Subject } from '../testing/graphs/mutation.ts'
import { toModelConfig } from '../testing/graphs/print-graph.ts'
import type { EnsembleSketch, GraphSketch } from '../testing/graphs/sketch.ts'
import { toDraft } from '../testing/graphs/spec-draft.ts'

/*
 * Each change of a valid ensemble that breaks it in one place is refused with its reason, at its path. The ensembles are those of drawn
 * graphs, which have every construct.
 */

const GRAPHS = 120 * testFactor()
/** Most changes of each kind: some fit every ensemble, others few. */
const EACH = 15 * testFactor()

/** Lists what is wrong with an ensemble, as `reason path`. */
function problemsOf(subject: Subject, mutant: Partial<Mutant> = {}): readonly string[] {
  const { ensemble, configs } = subject
  const spec = toDraft(ensemble)
  mutant.change?.(spec)
  const changed = new Map((mutant.configs ?? []).map((config) => [config.name, config]))
  const check = checkEnsemble(parsedEnsemble(ensemble.name, { ...spec }), {
    lookup: (name) => {
      const config = changed.get(name) ?? configs.get(name)
      if (mutant.pending?.includes(name) === true) return 'pending'
      if (config === undefined) return name === ensemble.name ? 'pending' : 'unknown'
      return { config, readyVersions: [1], optionalOutputs: optionalIn(subject, name) }
    },
  })
  if (check.accepted) return []
  return [check, ...(check.others ?? [])].map(
    ({ reason, message }) => `${reason} ${message.slice(0, message.indexOf(': '))}`,
  )
}

function optionalIn({ ensemble }: Subject, name: string): readonly string[] {
  const callees = ensemble.steps.flatMap(({ callee, onError }) =>
    onError !== undefined && 'fallback' in onError ? [callee, onError.fallback] : [callee],
  )
  const nested = callees.find((one) => one.name === name)
  if (nested?.kind !== 'ensemble') return []
  return nested.outputs.flatMap(({ name: output, optional }) => (optional ? [output] : []))
}

/** Completes the ensembles of a graph, each behind those that it runs. */
function subjectsOf({ models, ensembles }: GraphSketch): readonly Subject[] {
  const configs = new Map<string, ModelConfig>(
    models.map((model) => [model.name, toModelConfig(model)]),
  )
  return ensembles.map((ensemble: EnsembleSketch) => {
    const subject = { ensemble, configs: new Map(configs) }
    const check = checkEnsemble(parsedEnsemble(ensemble.name, { ...toDraft(ensemble) }), {
      lookup: (name) => {
        const config = configs.get(name)
        const optionalOutputs = optionalIn(subject, name)
        return config === undefined ? 'unknown' : { config, readyVersions: [1], optionalOutputs }
      },
    })
    if (!check.accepted) throw new Error(`${ensemble.name}: ${check.message}`)
    configs.set(ensemble.name, check.config)
    return subject
  })
}

await t.test('each change that breaks a valid ensemble is refused at its place', (t) => {
  const roll = dice(testSeed())
  const counts = new Map(MUTATIONS.map(({ name }) => [name, 0]))
  const problems: string[] = []
  for (let i = 0; i < GRAPHS; i += 1) {
    const graph = drawGraph(testSeed() * 1000 + i)
    for (const subject of subjectsOf(graph)) {
      for (const { name, find } of MUTATIONS) {
        const count = counts.get(name) ?? 0
        const places = count < EACH ? find(subject) : []
        const mutant = places[roll(places.length || 1)]
        if (mutant === undefined) continue
        counts.set(name, count + 1)
        const found = problemsOf(subject, mutant)
        const wanted = `${mutant.reason} ${mutant.path}`
        if (found.includes(wanted)) continue
        problems.push(
          `seed ${graph.seed}, ${subject.ensemble.name}, ${name}: got ${found.join(', ') || 'no problem'}, want ${wanted}`,
        )
      }
    }
  }
  t.same(problems.slice(0, 5), [], `${problems.length} are refused otherwise, or not`)
  const missing = [...counts].flatMap(([name, count]) => (count === 0 ? name : []))
  t.same(missing, [], 'changes that no ensemble can have')
  t.end()
})
