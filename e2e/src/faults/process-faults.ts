import { until } from '@tutti/chassis/testing'
import {
  AT_BROKER,
  BOTH_WAYS,
  CONNECTION_ERRORS,
  type Fault,
  ONE_PROCESS,
  PROCESSES,
  STEP_ERRORS,
} from './fault.ts'
import type { System } from './system.ts'

/** Where the models are: the only process, or the first step. */
export function modelsAt(system: System): string {
  return system.way === 'processes' ? 'step-0' : 'server'
}

/** An instance of a Python model ended under its request. */
export const INSTANCE_ERRORS = ['INTERNAL ENGINE_STOPPED']
const SERVER_ERRORS = [...CONNECTION_ERRORS, 'UNAVAILABLE SERVER_STOPPING']

type Promised = Pick<Fault, 'ways' | 'errors' | 'directErrors'>

function killed(name: string, at: string, o: Promised): Fault {
  return {
    name,
    ...o,
    withinMs: 30_000,
    heldMs: 0,
    strike: (system) => system.place(at).restart('SIGKILL'),
  }
}

function drained(name: string, at: string, o: Promised): Fault {
  return { ...killed(name, at, o), strike: (system) => system.place(at).restart('SIGTERM') }
}

function held(name: string, at: string, o: Promised & Pick<Fault, 'heldMs'>): Fault {
  return {
    name,
    ...o,
    withinMs: 30_000,
    strike: async (system) => system.place(at).process.kill('SIGSTOP'),
    undo: async (system) => system.place(at).process.kill('SIGCONT'),
  }
}

/** To the processes of the Python models. @returns how many there are. */
export async function signalInstances(system: System, signal: NodeJS.Signals): Promise<number> {
  const pids = await system.place(modelsAt(system)).instances()
  if (pids.length === 0) throw new Error('no instance of a Python model runs')
  for (const pid of pids) process.kill(pid, signal)
  return pids.length
}

/** Kills them, and waits until as many others run. */
export async function killInstances(system: System): Promise<void> {
  const before = await system.place(modelsAt(system)).instances()
  await signalInstances(system, 'SIGKILL')
  await until('the instances are replaced', async () => {
    const now = await system.place(modelsAt(system)).instances()
    return now.length === before.length && !now.some((pid) => before.includes(pid))
  })
}

export const PROCESS_FAULTS: readonly Fault[] = [
  killed('step killed (SIGKILL), started again', 'step-0', {
    ways: PROCESSES,
    errors: STEP_ERRORS,
  }),
  killed('router killed, started again', 'router-0', {
    ways: PROCESSES,
    errors: CONNECTION_ERRORS,
  }),
  killed('NATS killed, started again', 'broker', AT_BROKER),
  killed('server killed, started again', 'server', {
    ways: ONE_PROCESS,
    errors: CONNECTION_ERRORS,
  }),
  drained('step stopped in order (SIGTERM), started again', 'step-0', {
    ways: PROCESSES,
    errors: [],
  }),
  drained('router stopped in order, started again', 'router-0', {
    ways: PROCESSES,
    errors: SERVER_ERRORS,
  }),
  drained('server stopped in order, started again', 'server', {
    ways: ONE_PROCESS,
    errors: SERVER_ERRORS,
  }),
  held('step paused for 0.3 s (SIGSTOP)', 'step-0', { ways: PROCESSES, errors: [], heldMs: 300 }),
  held('step hung for 6 s (SIGSTOP)', 'step-0', {
    ways: PROCESSES,
    errors: STEP_ERRORS,
    heldMs: 6000,
  }),
  held('router hung for 6 s', 'router-0', { ways: PROCESSES, errors: STEP_ERRORS, heldMs: 6000 }),
  held('NATS hung for 5 s', 'broker', { ...AT_BROKER, heldMs: 5000 }),
  held('server hung for 5 s', 'server', { ways: ONE_PROCESS, errors: [], heldMs: 5000 }),
  {
    name: 'processes of a Python model killed',
    ways: BOTH_WAYS,
    errors: INSTANCE_ERRORS,
    withinMs: 30_000,
    heldMs: 0,
    isQuick: true,
    strike: killInstances,
  },
  {
    name: 'processes of a Python model hung for 5 s',
    ways: BOTH_WAYS,
    errors: [],
    withinMs: 30_000,
    heldMs: 5000,
    strike: (system) => signalInstances(system, 'SIGSTOP'),
    undo: (system) => signalInstances(system, 'SIGCONT'),
  },
]
