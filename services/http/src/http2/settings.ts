import { ConnectionError, ErrorCode } from './error-code.ts'
import { LEAST_MAX_FRAME_BYTES, MAX_WINDOW_BYTES, MOST_MAX_FRAME_BYTES, Setting } from './frames.ts'

const ENTRY_BYTES = 6

/** Settings of a client, without those that do not matter to us: we push nothing, and our encoder has no table. */
export interface ClientSettings {
  readonly initialWindowBytes?: number
  readonly maxFrameBytes?: number
}

/** Reads the payload of SETTINGS. @throws ConnectionError @see RFC 9113, 6.5 */
export function readSettings(payload: Buffer): ClientSettings {
  if (payload.byteLength % ENTRY_BYTES !== 0) {
    throw new ConnectionError(ErrorCode.frameSizeError, `${payload.byteLength} bytes of settings`)
  }
  const settings: { -readonly [K in keyof ClientSettings]: ClientSettings[K] } = {}
  for (let at = 0; at < payload.byteLength; at += ENTRY_BYTES) {
    const id = payload.readUInt16BE(at)
    const value = payload.readUInt32BE(at + 2)
    if (id === Setting.enablePush && value > 1) throw refused(ErrorCode.protocolError, id, value)
    if (id === Setting.initialWindowBytes) {
      if (value > MAX_WINDOW_BYTES) throw refused(ErrorCode.flowControlError, id, value)
      settings.initialWindowBytes = value
    }
    if (id === Setting.maxFrameBytes) {
      const isRight = value >= LEAST_MAX_FRAME_BYTES && value <= MOST_MAX_FRAME_BYTES
      if (!isRight) throw refused(ErrorCode.protocolError, id, value)
      settings.maxFrameBytes = value
    }
  }
  return settings
}

function refused(code: ErrorCode, id: number, value: number): ConnectionError {
  return new ConnectionError(code, `the setting ${id} is ${value}`)
}
