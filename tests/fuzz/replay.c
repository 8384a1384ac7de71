/* replay.c - main for a fuzz target where the compiler has no libFuzzer: runs the files named, and every one of them cut off anywhere. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int main(int argc, char **argv)
{
	static uint8_t bytes[65536];

	for (int i = 1; i < argc; i++) {
		FILE *file = fopen(argv[i], "rb");
		size_t n;

		if (!file) {
			perror(argv[i]);
			return 1;
		}
		n = fread(bytes, 1, sizeof(bytes), file);
		fclose(file);
		for (size_t cut = 0; cut <= n; cut++) {
			uint8_t *exact = malloc(cut ? cut : 1);

			if (!exact)
				return 1;
			memcpy(exact, bytes, cut);
			LLVMFuzzerTestOneInput(exact, cut);
			free(exact);
		}
	}
	return 0;
}
