/** Channels of ThreadState that the input of a client may write; the others are kept by Deputy. */
export const CLIENT_CHANNELS: readonly string[] = [
  "messages",
  "title",
  "todos",
  "goal",
  "artifacts",
  "uploaded_files",
  "viewed_images",
  "thread_data",
];
