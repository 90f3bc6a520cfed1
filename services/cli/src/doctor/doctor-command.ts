import { resolve } from 'node:path'
import type { FlagTable, FlagValues, ProcessEnvironment } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { readBackendConfig } from '@tutti/step'
import { type Command, FORMAT_FLAG, withFlags } from '../command.ts'
import { AUTO, checkPythonFlags, PATH_NAMES } from '../serve/choose-python.ts'
import { SERVE_FLAGS } from '../serve/serve-flags.ts'
import { type Finding, renderFindings } from './finding.ts'
import {
  checkGpu,
  checkNode,
  checkOnnxRuntime,
  checkPort,
  checkPython,
  checkSharedMemory,
} from './machine-checks.ts'
import { type ModelNeeds, readModelNeeds } from './model-needs.ts'

/** Those of `tutti serve` that decide what it needs of the machine. */
export const DOCTOR_FLAGS = {
  'model-repository': {
    type: 'string',
    repeatable: true,
    description:
      'Folder that holds models: what they need is missing if it is not there. Repeat the flag for more. Without it, only what every server needs is.',
  },
  'model-config-name': SERVE_FLAGS['model-config-name'],
  'backend-config': SERVE_FLAGS['backend-config'],
  'backend-directory': SERVE_FLAGS['backend-directory'],
  python: SERVE_FLAGS.python,
  'grpc-address': SERVE_FLAGS['grpc-address'],
  'grpc-port': SERVE_FLAGS['grpc-port'],
  'http-address': SERVE_FLAGS['http-address'],
  'http-port': SERVE_FLAGS['http-port'],
  'metrics-address': SERVE_FLAGS['metrics-address'],
  'metrics-port': SERVE_FLAGS['metrics-port'],
  format: FORMAT_FLAG,
} as const satisfies FlagTable

type Flags = FlagValues<typeof DOCTOR_FLAGS>

export const doctorCommand: Command = {
  name: 'doctor',
  description: 'Tells what this machine lacks for tutti serve, and how to mend it.',
  run: withFlags(
    { usage: 'tutti doctor [--model-repository DIR] [FLAGS]', flags: DOCTOR_FLAGS },
    async ({ flags, positionals }, environment) => {
      if (positionals.length > 0) {
        throw new ServeError('FLAG_INVALID', `got '${positionals[0]}', want flags only`)
      }
      checkPythonFlags(flags)
      const findings = await examine(flags, environment)
      environment.out(renderFindings(findings, flags.format))
      return findings.some(({ status }) => status === 'missing') ? 1 : 0
    },
  ),
}

async function examine(flags: Flags, { env }: ProcessEnvironment): Promise<readonly Finding[]> {
  const { models, problems } = await readNeeds(flags)
  const candidates = pythonCandidates(flags)
  const makesOne = flags.python === AUTO
  const ports = (['grpc', 'http', 'metrics'] as const).map((name) =>
    checkPort(name, flags[`${name}-address`], flags[`${name}-port`]),
  )
  const findings = [
    checkNode(process.versions.node),
    checkOnnxRuntime(models.onnxruntime),
    await checkPython('python', { candidates: candidates.python, models: models.python, makesOne }),
    await checkPython('pytorch', {
      candidates: candidates.pytorch,
      models: models.pytorch,
      makesOne,
    }),
    ...(await checkSharedMemory([...models.python, ...models.pytorch])),
    await checkGpu(models.gpu, env),
    ...(await Promise.all(ports)),
    ...[...problems].map(([name, problem]) => brokenModel(name, problem)),
  ]
  return findings.filter((finding) => finding !== undefined)
}

/** A repository that cannot be read is an error of the command line. */
async function readNeeds(flags: Flags): Promise<ModelNeeds> {
  const configName = flags['model-config-name']
  try {
    return await readModelNeeds(flags['model-repository'], {
      backendDirectory: flags['backend-directory'],
      ...(configName !== undefined && { configName }),
    })
  } catch (cause) {
    const { reason, message } = ServeError.from(cause)
    if (reason !== 'REPOSITORY_UNREADABLE') throw cause
    throw new ServeError('FLAG_INVALID', `--model-repository: ${message}`, { cause })
  }
}

/** The interpreters that `tutti serve` would take with these flags. */
function pythonCandidates(flags: Flags): Record<'python' | 'pytorch', readonly string[]> {
  const { python, pytorch } = readBackendConfig(flags['backend-config'])
  const named = [python.interpreter].filter((name) => typeof name === 'string')
  const namedForTorch = [pytorch.interpreter].filter((name) => typeof name === 'string')
  if (flags.python === AUTO) {
    const all = [...named, ...PATH_NAMES]
    return { python: all, pytorch: [...namedForTorch, ...all] }
  }
  const given = flags.python?.includes('/') === true ? resolve(flags.python) : flags.python
  const [one = 'python3'] = [given, ...named].filter((name) => name !== undefined)
  return { python: [one], pytorch: [namedForTorch[0] ?? one] }
}

function brokenModel(name: string, problem: string): Finding {
  const mending = 'correct its files; tutti config shows what a configuration becomes'
  return { check: 'model', status: 'missing', found: problem, mending, models: [name] }
}
