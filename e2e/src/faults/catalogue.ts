import { CLIENT_FAULTS } from './client-faults.ts'
import type { Fault } from './fault.ts'
import { MACHINE_FAULTS } from './machine-faults.ts'
import { NETWORK_FAULTS } from './network-faults.ts'
import { PROCESS_FAULTS } from './process-faults.ts'

/** Every fault, in the order of docs/reliability.md. */
export const FAULTS: readonly Fault[] = [
  ...PROCESS_FAULTS,
  ...NETWORK_FAULTS,
  ...CLIENT_FAULTS,
  ...MACHINE_FAULTS,
]
