import { isNotFound } from './kube-error.ts'

/** Waits for an object that was asked for. @returns undefined if it is not there. */
export async function unlessNotFound<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}
