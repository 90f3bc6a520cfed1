import { askCudaDriver, type CudaDriver } from './cuda-driver.ts'

/** The accelerator that a process was given to execute on, as a Model's `spec.accelerator` names it. */
export interface GivenAccelerator {
  /** The extended resource: `nvidia.com/gpu`, `nvidia.com/mig-1g.5gb`. */
  readonly resourceName: string
  readonly count: number
}

/** Devices of one sort, and how that is known: for errors. */
export interface FoundDevices {
  readonly count: number
  readonly found: string
}

/** The one place that knows which devices this process has. */
export interface Devices {
  /** Instances that may choose execute there; undefined where none was given, which leaves what is there to KIND_GPU. */
  readonly accelerator: GivenAccelerator | undefined
  /**
   * Finds the devices that CUDA offers; of more than were given the first. The driver is asked once, when the first model wants
   * to know.
   */
  cuda(): Promise<FoundDevices>
  /** Finds the devices that models' own code may use: other vendors' too, of which only their number is known. */
  any(): Promise<FoundDevices>
}

export interface DevicesOptions {
  readonly accelerator?: GivenAccelerator | undefined
  /** Environment variables of the process: what a device plugin has set there is told in errors. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
  readonly askDriver?: () => Promise<CudaDriver>
}

/** Whole GPUs, parts of one (MIG) and shares by time have names of this domain. */
const NVIDIA = 'nvidia.com/'
const TOLD = ['NVIDIA_VISIBLE_DEVICES', 'CUDA_VISIBLE_DEVICES'] as const

/** Where there are none, whatever the machine has. */
export const NO_DEVICES: Devices = createDevices({
  askDriver: () => Promise.resolve({ count: 0, problem: 'not asked' }),
})

export function createDevices(o: DevicesOptions = {}): Devices {
  const { accelerator, env = {}, askDriver = askCudaDriver } = o
  const given = [
    accelerator === undefined
      ? 'no accelerator'
      : `accelerator ${accelerator.resourceName}=${accelerator.count}`,
    ...TOLD.flatMap((name) => (env[name] === undefined ? [] : [`${name}=${env[name]}`])),
  ]
  let asked: Promise<FoundDevices> | undefined
  const cuda = (): Promise<FoundDevices> => {
    asked ??= askDriver().then((driver) => {
      const count = Math.min(driver.count, accelerator?.count ?? driver.count)
      return { count, found: [...given, describe(driver)].join(', ') }
    })
    return asked
  }
  return {
    accelerator,
    cuda,
    any: () =>
      accelerator === undefined || accelerator.resourceName.startsWith(NVIDIA)
        ? cuda()
        : Promise.resolve({ count: accelerator.count, found: given.join(', ') }),
  }
}

function describe(driver: CudaDriver): string {
  if ('problem' in driver) return `no CUDA driver: ${driver.problem}`
  return `CUDA devices: ${driver.count}`
}
