import type { FlagTable, FlagValues, ProcessEnvironment } from '@tutti/chassis'
import { RESULT_FORMAT_FLAG, withFlags } from '@tutti/command-line/command'
import { DoctorResult, type Finding, renderFindings } from '@tutti/command-line/results'
import { ENGINES, ENGINES_IN_PYTHON, type EngineName } from '@tutti/engines'
import { ServeError } from '@tutti/errors'
import { refusingUnreadable } from '../manifests/repository-configs.ts'
import { AUTO_PYTHON, checkPythonFlags, pythonCandidates } from '../serve/choose-python.ts'
import { SERVE_FLAGS } from '../serve/serve-flags.ts'
import {
  checkEngineFor,
  checkGpu,
  checkNode,
  checkPort,
  checkSharedMemory,
} from './machine-checks.ts'
import { GPU, readModelNeeds } from './model-needs.ts'

/** Flags of `tutti doctor`: the flags of `tutti serve` that decide what the server needs from the machine. */
export const DOCTOR_FLAGS = {
  'model-repository': {
    type: 'string',
    path: 'folder',
    repeatable: true,
    description:
      'Folder of models to check for. What they need and this machine lacks is `missing`; what no model needs is a `note`. Repeat the flag for more.',
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
  format: RESULT_FORMAT_FLAG,
} as const satisfies FlagTable

type Flags = FlagValues<typeof DOCTOR_FLAGS>

export const doctorCommand = withFlags(
  {
    usage: 'tutti doctor [--model-repository DIR] [FLAGS]',
    flags: DOCTOR_FLAGS,
    result: DoctorResult,
  },
  async ({ flags, positionals }, environment) => {
    if (positionals.length > 0) {
      throw new ServeError('FLAG_INVALID', `got '${positionals[0]}', want flags only`)
    }
    checkPythonFlags(flags)
    const findings = await examine(flags, environment)
    environment.out(renderFindings(findings, flags.format))
    return findings.some(({ status }) => status === 'missing') ? 1 : 0
  },
)

async function examine(flags: Flags, { env }: ProcessEnvironment): Promise<readonly Finding[]> {
  const configName = flags['model-config-name']
  const { models, problems } = await refusingUnreadable(() =>
    readModelNeeds(flags['model-repository'], {
      backendDirectory: flags['backend-directory'],
      ...(configName !== undefined && { configName }),
    }),
  )
  const checkOf = (backend: EngineName) => {
    const { named, candidates } = pythonCandidates(flags, backend, env['PATH'])
    return checkEngineFor(backend, models.get(backend) ?? [], {
      interpreters: [...named, ...candidates],
      makesEnvironment: flags.python === AUTO_PYTHON,
    })
  }
  const ports = (['grpc', 'http', 'metrics'] as const).map((name) =>
    checkPort(name, flags[`${name}-address`], flags[`${name}-port`]),
  )
  const engines: Finding[] = []
  // One after the other: an interpreter that imports PyTorch takes all of a small machine.
  for (const backend of ENGINES.map((engine) => engine.backend).toSorted()) {
    engines.push(await checkOf(backend))
  }
  const findings = [
    checkNode(process.versions.node),
    ...engines,
    ...(await checkSharedMemory(
      ENGINES_IN_PYTHON.flatMap(({ backend }) => models.get(backend) ?? []),
    )),
    await checkGpu(models.get(GPU) ?? [], env),
    ...(await Promise.all(ports)),
    ...[...problems].map(([name, problem]) => brokenModel(name, problem)),
  ]
  return findings.filter((finding) => finding !== undefined)
}

function brokenModel(name: string, problem: string): Finding {
  const mending = 'correct its files; tutti config shows what a configuration becomes'
  return { check: 'model', status: 'missing', found: problem, mending, neededBy: [name] }
}
