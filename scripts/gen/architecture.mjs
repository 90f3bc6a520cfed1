// Draws docs/images/architecture.svg, the picture of ARCHITECTURE.md: the processes on Kubernetes, and what goes from one to another.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { drawGraph } from './draw-graph.mjs'

/** Notes on what goes between the processes, by name, and how. */
const NOTES = {
  client: 'v2 gRPC, REST',
  kubectl: 'Model, Ensemble, Router',
  resources: 'watched',
  'accepted revisions': 'ControllerRevisions',
  pods: 'Deployments',
  'requests, tensors': 'NATS, or directly',
}

/** Each process: what it does, what comes to it, and what goes from it. */
const PROCESSES = {
  'API server': ['of Kubernetes', ['kubectl'], ['resources']],
  operator: ['checks, creates pods', ['resources'], ['accepted revisions', 'pods']],
  router: ['runs ensembles', ['client', 'accepted revisions'], ['requests, tensors']],
  'step: model A': ['queue, batches, engine', ['requests, tensors', 'pods'], []],
  'step: model B': ['queue, batches, engine', ['requests, tensors', 'pods'], []],
}

/** @param root - of the checkout; services/console is built. */
export function writeArchitecture(root) {
  const toPort = (name) => ({ name, tensor: name })
  const tensors = Object.entries(NOTES).map(([name, note]) => ({ name, note }))
  const picture = drawGraph({
    name: 'Tutti on Kubernetes',
    inputs: tensors.filter(({ name }) => name === 'client' || name === 'kubectl'),
    outputs: [],
    tensors,
    steps: Object.entries(PROCESSES).map(([name, [model, inputs, outputs]]) => ({
      name,
      model,
      inputs: inputs.map(toPort),
      outputs: outputs.map(toPort),
    })),
  })
  writeFileSync(join(root, 'docs', 'images', 'architecture.svg'), picture)
}
