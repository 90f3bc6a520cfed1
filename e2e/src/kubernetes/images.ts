import { symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Test } from 'tap'
import { ROOT } from '../serving.ts'
import { tempFolder } from '../temp-repository.ts'
import { PYTHON, TORCH_PYTHON } from '../triton-client.ts'
import type { Program } from './pod-commands.ts'
import type { ProcessImage } from './process-kubelet.ts'

/** The images of the chart, as the operator's flags name them. */
export const STEP_IMAGE = 'tutti/step:test'
export const ROUTER_IMAGE = 'tutti/router:test'

/** An image of a user's own: the step's, with a `python3` that has PyTorch, where there is one. */
export const TORCH_STEP_IMAGE = 'registry.example/step-with-torch:1'

function program(room: string, addresses: readonly string[]): Program {
  return {
    command: [process.execPath, join(ROOT, 'services', room, 'dist', 'main.js')],
    addressFlags: addresses.map((door) => `--${door}-address`),
  }
}

/** The built programs as images; steps find the Python of the tests as `python3`, if there is one. */
export async function openImages(t: Test): Promise<(name: string) => ProcessImage | undefined> {
  const env = await envWith(t, PYTHON)
  const step = { 'tutti-step': program('step', DOORS) }
  const images: Readonly<Record<string, ProcessImage>> = {
    [STEP_IMAGE]: { programs: step, env },
    [ROUTER_IMAGE]: { programs: { 'tutti-router': program('router', [...DOORS, 'edge']) }, env },
    [TORCH_STEP_IMAGE]: { programs: step, env: await envWith(t, TORCH_PYTHON) },
  }
  return (name) => images[name]
}

/** With that Python as `python3`. */
async function envWith(t: Test, python: string | undefined): Promise<ProcessImage['env']> {
  const folder = await tempFolder(t)
  if (python !== undefined) await symlink(python, join(folder, 'python3'))
  // A Python is found again by the folder that its link is in.
  const folders = python === undefined ? [] : [dirname(python)]
  return { PATH: [...folders, folder, '/usr/bin', '/bin'].join(':') }
}

const DOORS = ['grpc', 'http', 'metrics']
