import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '@tutti/chassis/testing'
import { clearDisk, fillDisk, fullLog, readerlessLog, SMALL_DISK } from './disk.ts'
import {
  AT_BROKER,
  BOTH_WAYS,
  CONNECTION_ERRORS,
  type Fault,
  ONE_PROCESS,
  PROCESSES,
  STEP_ERRORS,
} from './fault.ts'
import { exhaustMemory, withoutMemoryLimits } from './memory.ts'
import { command } from './own-namespaces.ts'
import type { Manner } from './place.ts'
import { INSTANCE_ERRORS, killInstances, modelsAt, signalInstances } from './process-faults.ts'
import type { System } from './system.ts'

const FAKETIME = process.env['TUTTI_FAKETIME']

function clockFile({ folders }: System): string {
  return join(folders.temporary, 'clock')
}

/** The clock of a process jumps, and the one by which it counts time does not: as if the machine's had been set. */
function jump(name: string, at: (system: System) => string, offset: '+1h' | '-1h'): Fault {
  return {
    name,
    ways: at === modelsAt ? BOTH_WAYS : PROCESSES,
    errors: [],
    withinMs: 30_000,
    heldMs: 3000,
    skip: FAKETIME === undefined && (process.env['TUTTI_FAKETIME_MISSING'] ?? 'no TUTTI_FAKETIME'),
    prepare: async (system) => {
      await writeFile(clockFile(system), '+0\n')
      await system.place(at(system)).restart('SIGTERM', clockManner(clockFile(system)))
    },
    strike: async (system) => {
      await writeFile(clockFile(system), `${offset}\n`)
      const { address } = system.place(at(system)).host
      await until('its clock has jumped', async () => {
        const aheadMs = (await clockOf(address)) - Date.now()
        return Math.abs(aheadMs) > HALF_AN_HOUR_MS && Math.sign(aheadMs) === Number(`${offset[0]}1`)
      })
    },
    undo: (system) => writeFile(clockFile(system), '+0\n'),
    cleanUp: (system) => system.place(at(system)).restart('SIGTERM'),
  }
}

const HALF_AN_HOUR_MS = 1_800_000

function clockManner(file: string): Manner {
  return {
    env: {
      LD_PRELOAD: FAKETIME ?? '',
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      DONT_FAKE_MONOTONIC: '1',
    },
  }
}

/** Reads what a server takes for the time, in milliseconds since the epoch. */
async function clockOf(address: string): Promise<number> {
  const answer = await fetch(`http://${address}:8000/v2/health/live`)
  await answer.arrayBuffer()
  return Date.parse(answer.headers.get('date') ?? '')
}

/** A process gets no more files and connections; it keeps those that it has. */
const NO_DESCRIPTORS = 10

async function limitDescriptors(system: System, at: string, limit: number): Promise<void> {
  const { pid } = system.place(at).process
  await command('prlimit', `--pid=${pid}`, `--nofile=${limit}:`)
}

const USUAL_DESCRIPTORS = 1024

/** Nothing can be written on a disk, and instances should start meanwhile. */
function fullDisk(
  name: string,
  o: {
    readonly fill: (system: System) => Promise<unknown>
    readonly undo: (system: System) => Promise<unknown>
  },
): Fault {
  return {
    name,
    ways: BOTH_WAYS,
    errors: INSTANCE_ERRORS,
    withinMs: 60_000,
    heldMs: 3000,
    strike: async (system) => {
      await o.fill(system)
      await signalInstances(system, 'SIGKILL')
    },
    undo: o.undo,
  }
}

const SHARED_MEMORY = '/dev/shm'

const LOST_LOG = {
  ways: ONE_PROCESS,
  errors: INSTANCE_ERRORS,
  withinMs: 30_000,
  heldMs: 1000,
  cleanUp: (system: System) => system.place('server').restart('SIGTERM'),
}

export const MACHINE_FAULTS: readonly Fault[] = [
  jump('clock of a router an hour ahead', () => 'router-0', '+1h'),
  jump('clock of a router an hour back', () => 'router-0', '-1h'),
  jump('clock of the process with the models an hour ahead', modelsAt, '+1h'),
  jump('clock of the process with the models an hour back', modelsAt, '-1h'),
  {
    name: 'server has no file descriptors left for 4 s',
    ways: BOTH_WAYS,
    // A thread of a model that begins meanwhile needs some.
    errors: [...CONNECTION_ERRORS, 'UNAVAILABLE ENGINE_STOPPED'],
    withinMs: 30_000,
    heldMs: 4000,
    strike: (system) => limitDescriptors(system, serverAt(system), NO_DESCRIPTORS),
    undo: (system) => limitDescriptors(system, serverAt(system), USUAL_DESCRIPTORS),
  },
  {
    name: 'step has no file descriptors left for 4 s, while NATS is started again',
    ...AT_BROKER,
    // With a direct connection requests reach it, and its models need descriptors.
    directErrors: ['UNAVAILABLE ENGINE_STOPPED'],
    withinMs: 30_000,
    heldMs: 4000,
    strike: async (system) => {
      await limitDescriptors(system, 'step-0', NO_DESCRIPTORS)
      await system.place('broker').restart('SIGKILL')
    },
    undo: (system) => limitDescriptors(system, 'step-0', USUAL_DESCRIPTORS),
  },
  {
    name: 'memory limit reached, the kernel kills the process with the models',
    ways: BOTH_WAYS,
    errors: [...STEP_ERRORS, ...CONNECTION_ERRORS, ...INSTANCE_ERRORS],
    withinMs: 60_000,
    heldMs: 0,
    skip: withoutMemoryLimits(),
    strike: async (system) => {
      const place = system.place(modelsAt(system))
      await exhaustMemory(place)
      await place.start()
    },
  },
  fullDisk('temporary folder full for 3 s, processes of a Python model killed', {
    fill: ({ folders }) => fillDisk(folders.temporary),
    undo: ({ folders }) => clearDisk(folders.temporary),
  }),
  fullDisk('/dev/shm full for 3 s, processes of a Python model killed', {
    fill: async () => {
      await command('mount', '-t', 'tmpfs', '-o', SMALL_DISK, 'tmpfs', SHARED_MEMORY)
      await fillDisk(SHARED_MEMORY)
    },
    undo: () => command('umount', SHARED_MEMORY),
  }),
  {
    name: 'log on a full disk',
    ...LOST_LOG,
    prepare: (system) => fullLog.prepare(system.place('server')),
    strike: async (system) => {
      await fullLog.fill()
      await killInstances(system)
    },
  },
  {
    name: 'the log is no longer read',
    ...LOST_LOG,
    prepare: (system) => system.place('server').restart('SIGTERM', readerlessLog),
    strike: killInstances,
  },
  {
    name: 'model repository cannot be read for 4 s, while it is polled',
    ways: ONE_PROCESS,
    errors: [],
    withinMs: 30_000,
    heldMs: 4000,
    strike: ({ folders }) => rename(folders.repository, `${folders.repository}-away`),
    undo: ({ folders }) => rename(`${folders.repository}-away`, folders.repository),
  },
]

/** Finds the name of the server that clients ask. */
function serverAt(system: System): string {
  return system.targets[0]?.name ?? ''
}
