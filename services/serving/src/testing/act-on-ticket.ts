import { ok } from 'node:assert/strict'
import { ServeError } from '@tutti/errors'
import type { AdmissionTicket } from '../admission/admission-ticket.ts'

/** Does `act` to a ticket, and asserts that a refusal is OVERLOADED. @param act - a text that names no act charges the bytes. */
export function actOn(ticket: AdmissionTicket, act: string, bytes: number): void {
  try {
    if (act === 'close') ticket.close()
    else if (act === 'release') ticket.release(bytes)
    else if (act === 'enter') ticket.enter()
    else if (act === 'leave') ticket.leave()
    else if (act === 'waits') ticket.waitForClient(true)
    else if (act === 'ours') ticket.waitForClient(false)
    else ticket.charge(bytes)
  } catch (error) {
    ok(ServeError.from(error).reason === 'OVERLOADED')
  }
}
