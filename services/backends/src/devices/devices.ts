import { askCudaDriver, type CudaDriver } from './cuda-driver.ts'

/** Accelerator that a process was given, as a Model's `spec.accelerator` names it. */
export interface GivenAccelerator {
  /** The extended resource: `nvidia.com/gpu`, `nvidia.com/mig-1g.5gb`. */
  readonly resourceName: string
  /** Number of devices; `all`: as many as CUDA's driver offers, those of the pod's claims say. */
  readonly count: number | 'all'
}

/** Number of devices of one kind, and for errors a text that says how they were found. */
export interface FoundDevices {
  readonly count: number
  readonly found: string
}

/** Devices that this process has. */
export interface Devices {
  /**
   * Accelerator for instances that may choose. Undefined if none was given: then only KIND_GPU instances use devices of the
   * machine.
   */
  readonly accelerator: GivenAccelerator | undefined
  /** Finds the devices that CUDA offers; if that is more than were given, the first ones. The first call asks the driver. */
  cuda(): Promise<FoundDevices>
  /** Finds the devices that the code of models may use. For another vendor's accelerator only the number is known. */
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

/** Devices of a process that has none, whatever the machine has. */
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
      const { count: most = 'all' } = accelerator ?? {}
      const count = most === 'all' ? driver.count : Math.min(driver.count, most)
      return { count, found: [...given, describe(driver)].join(', ') }
    })
    return asked
  }
  return {
    accelerator,
    cuda,
    any: () =>
      accelerator === undefined ||
      accelerator.count === 'all' ||
      accelerator.resourceName.startsWith(NVIDIA)
        ? cuda()
        : Promise.resolve({ count: accelerator.count, found: given.join(', ') }),
  }
}

function describe(driver: CudaDriver): string {
  if ('problem' in driver) return `no CUDA driver: ${driver.problem}`
  return `CUDA devices: ${driver.count}`
}
