// Draws examples/*/graph.svg from the manifests beside them: an Ensemble's steps, or a Model and those that it calls, laid out as in the console.
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { parseModelConfig } from '../../services/model-config/dist/index.js'
import { drawGraph } from './draw-graph.mjs'

/** @param root - of the checkout; services/cli and services/console are built. */
export function writeExampleGraphs(root) {
  const examples = join(root, 'examples')
  const folders = readdirSync(examples).filter((name) =>
    existsSync(join(examples, name, 'manifest.yaml')),
  )
  const repositories = [
    join(root, 'model_repository'),
    ...folders.map((name) => join(examples, name, 'models')),
  ].filter((path) => existsSync(path))
  const explain = (name, file) => {
    const flags = repositories.map((path) => `--model-repository=${path}`)
    const command = [join(root, 'services/cli/dist/main.js'), 'explain', name, `-f=${file}`]
    const args = [...command, ...flags, '--format=json']
    return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' }))
  }
  const readConfig = (name) => {
    const path = repositories
      .map((folder) => join(folder, name, 'config.pbtxt'))
      .find((file) => existsSync(file))
    return { ...parseModelConfig(readFileSync(path, 'utf8'), path), name }
  }
  for (const folder of folders) {
    const file = join(examples, folder, 'manifest.yaml')
    const manifests = parseAllDocuments(readFileSync(file, 'utf8')).map((one) => one.toJS())
    const ensemble = manifests.find(({ kind }) => kind === 'Ensemble')
    const names = manifests.filter(({ kind }) => kind === 'Model').map(nameOf)
    const graph =
      ensemble === undefined
        ? graphOfModels(names.map(readConfig))
        : graphOfEnsemble(explain(nameOf(ensemble), file))
    writeFileSync(join(examples, folder, 'graph.svg'), drawGraph(graph))
  }
}

function nameOf({ metadata, spec }) {
  return spec.modelName ?? metadata.name
}

function graphOfEnsemble({ ensemble, inputs, outputs, steps }) {
  const toPort = ({ port, name }) => ({ name: port, tensor: name })
  return {
    name: ensemble,
    inputs,
    outputs,
    tensors: [
      ...inputs,
      ...outputs,
      ...steps.flatMap(({ reads, makes }) => [...reads, ...makes]),
    ],
    steps: steps.map(({ name, model, reads, makes }) => ({
      name,
      model,
      inputs: reads.map(toPort),
      outputs: makes.map(toPort),
    })),
  }
}

/** The model that no other one calls, and below it those that its parameters name. */
function graphOfModels(configs) {
  const callsOf = ({ parameters }) => {
    const values = new Set(Object.values(parameters).map(({ string_value }) => string_value))
    return configs.map(({ name }) => name).filter((name) => values.has(name))
  }
  const called = new Set(configs.flatMap(callsOf))
  const [first, ...others] = configs.filter(({ name }) => !called.has(name))
  if (first === undefined || others.length > 0) {
    throw new Error(`got ${others.length + 1} models that no other one calls, want one`)
  }
  const tensorsOf = (specs) =>
    specs.map(({ name, data_type, dims }) => ({
      name,
      datatype: data_type.replace('TYPE_', '').replace('STRING', 'BYTES'),
      shape: first.max_batch_size > 0 ? [-1, ...dims] : dims,
    }))
  const inputs = tensorsOf(first.input)
  const outputs = tensorsOf(first.output)
  const toPort = ({ name }) => ({ name, tensor: name })
  const calls = callsOf(first).map((name) => ({ name, tensor: `calls ${name}` }))
  return {
    name: first.name,
    inputs,
    outputs,
    tensors: [...inputs, ...outputs],
    steps: [
      {
        name: first.name,
        model: first.backend,
        inputs: inputs.map(toPort),
        outputs: [...outputs.map(toPort), ...calls],
      },
      ...calls.map((call) => ({
        name: call.name,
        model: configs.find(({ name }) => name === call.name).backend,
        inputs: [call],
        outputs: [],
      })),
    ],
  }
}
