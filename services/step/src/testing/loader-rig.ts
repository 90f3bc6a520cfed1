import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ModelRepository } from '@tutti/repository'
import type { Test } from 'tap'
import { openStep, type Step } from '../step.ts'
import type { StepOptions } from '../step-options.ts'
import { stepOptions } from './open-test-step.ts'
import { ScriptedEngine } from './scripted-engine.ts'
import { floats, RecordingSink, requestContext } from './step-builders.ts'

/** A model of the scripted engine, all of whose versions are served. */
export const LOADER_CONFIG = `backend: "scripted"
input { name: "x" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "y" data_type: TYPE_FP32 dims: [ -1 ] }
version_policy { all { } }`

/** The same as JSON, for load requests. */
export const LOADER_JSON_CONFIG = JSON.stringify({
  backend: 'scripted',
  input: [{ name: 'x', data_type: 'TYPE_FP32', dims: [-1] }],
  output: [{ name: 'y', data_type: 'TYPE_FP32', dims: [-1] }],
})

/** Version -> its file. */
type Versions = Readonly<Record<number, { readonly f: string }>>

/** Opens a step over a repository of models, by name, whose files the test may change. */
export async function openLoaderRig(
  t: Test,
  models: Readonly<Record<string, Versions>>,
  o: Partial<StepOptions> = {},
) {
  const directory = t.testdir({
    repository: Object.fromEntries(
      Object.entries(models).map(([name, versions]) => [
        name,
        { 'config.pbtxt': LOADER_CONFIG, ...versions },
      ]),
    ),
    temporary: {},
  })
  const repository = new ModelRepository({
    paths: [join(directory, 'repository')],
    temporaryDirectory: join(directory, 'temporary'),
  })
  const engine = new ScriptedEngine()
  engine.isImmediate = true
  const step = openStep(stepOptions({ repository, engines: [engine], ...o }))
  t.teardown(async () => {
    await step.close()
    await repository.close()
  })
  const write = (path: string, text: string): Promise<void> =>
    writeFile(join(directory, 'repository', path), text)
  return { step, engine, write, states: () => statesOf(step) }
}

/** `version: STATE reason` of a model's versions, or its reason. */
export function statesOf(step: Step, name = 'm'): readonly string[] {
  const model = step.served().find((served) => served.name === name)
  if (model === undefined) return []
  if (model.versions.length === 0) return [model.reason]
  return model.versions.map((v) => `${v.version}: ${v.state} ${v.reason}`.trimEnd())
}

/** The revision of a version of the only model. */
export function revisionOf(step: Step, version = 1): string {
  const [model] = step.served()
  return model?.versions.find((v) => v.version === version)?.revision ?? ''
}

/** A request that pinned a revision. */
export function sendPinned(step: Step, revision: string, version = 1) {
  const sink = new RecordingSink()
  const inputs = [floats('x', [4])]
  const request = { context: requestContext(), requestedOutputs: [], inputs }
  const { signal } = new AbortController()
  step.executor({ model: 'm', version, revision }).execute(request, sink, { signal })
  return { sink, done: sink.all }
}

/** Waits for something that happens by itself. */
export async function untilSo(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise(setImmediate)
}

/** How a request that pinned a revision of `m` ends. */
export async function sentPinned(step: Step, revision: string): Promise<string> {
  const { sink, done } = sendPinned(step, revision)
  await done
  return sink.outcome
}
